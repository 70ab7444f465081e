/** Folder of the guest that holds everything of `guest/`. */
export const INTERPRETER_FOLDER = '/usr/lib/aenv-code-interpreter';

/** What sandboxes of the template are, and what clients of `@e2b/code-interpreter` rely on. */
export const CODE_INTERPRETER = {
  /** the template that the published clients ask for */
  alias: 'code-interpreter-v1',
  /** the port that they call */
  port: 49999,
  /** answers 200 once cells can be run */
  healthPath: '/health',
  /** answers when everything is in memory that cells are likely to import, so that machines captured then have it */
  warmPath: '/warm',
  /** Cells run as root, as in E2B's template: code of agents installs packages wherever it is. */
  startUser: 'root',
  startCmd: `${INTERPRETER_FOLDER}/start`,
} as const;

/**
 * Debian packages that the guest has for cells, besides those of the base image; of their dependencies only shared
 * libraries come along. pandas and matplotlib bring themselves to a third of this; scipy and what is built on it would
 * double the image.
 * @param codename of the Debian release
 */
export function interpreterPackages(codename: string): readonly string[] {
  return codename === 'bookworm' ? [...PACKAGES, ...BEFORE_PYTHON_3_12] : PACKAGES;
}

/** What pip needs there is a part of Python itself in later releases, or gone. */
const BEFORE_PYTHON_3_12 = ['python3-distutils', 'python3-lib2to3'];

const PACKAGES = [
  'libstdc++6', // for Node
  'python-matplotlib-data',
  'python3-certifi',
  'python3-chardet',
  'python3-charset-normalizer',
  'python3-contourpy',
  'python3-cycler',
  'python3-dateutil',
  'python3-fonttools',
  'python3-idna',
  'python3-kiwisolver',
  'python3-matplotlib',
  'python3-numpy',
  'python3-packaging',
  'python3-pandas',
  'python3-pandas-lib',
  'python3-pil',
  'python3-pip',
  'python3-pkg-resources',
  'python3-pyparsing',
  'python3-requests',
  'python3-setuptools',
  'python3-six',
  'python3-tz',
  'python3-urllib3',
  'python3-wheel',
  'tzdata',
];
