// The order of the rooms: a room imports only what stands in its row. See docs/architecture.md.
const MAY_IMPORT = {
  contracts: [],
  platform: ['contracts'],
  envd: ['contracts'],
  'code-interpreter': ['contracts'],
  guest: ['platform', 'contracts'],
  block: ['platform', 'contracts'],
  images: ['block', 'platform', 'contracts'],
  network: ['platform', 'contracts'],
  vmm: ['platform', 'contracts'],
  node: ['vmm', 'network', 'images', 'block', 'guest', 'code-interpreter', 'platform', 'contracts'],
  cli: ['contracts'],
};

module.exports = {
  forbidden: [
    ...Object.entries(MAY_IMPORT).map(([room, allowed]) => ({
      name: `room-${room}`,
      comment: `packages/${room} may import only: ${allowed.join(', ') || 'nothing of the house'}`,
      severity: 'error',
      from: { path: `^packages/${room}/` },
      to: { path: '^packages/', pathNot: `^packages/(${[room, ...allowed].join('|')})/` },
    })),
    {
      name: 'no-circular',
      severity: 'error',
      from: {},
      to: { circular: true, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'contracts-do-no-io',
      severity: 'error',
      from: { path: '^packages/contracts/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'not-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'tests-stay-out-of-the-product',
      severity: 'error',
      from: { path: '^packages/', pathNot: '\\.test\\.ts$|/testing/' },
      to: { path: '^(tests|bench|tools)/' },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)node_modules/|/gen/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node'],
      extensions: ['.ts', '.js', '.json'],
    },
    moduleSystems: ['es6', 'cjs'],
  },
};
