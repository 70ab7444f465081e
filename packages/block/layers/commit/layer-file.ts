import { type BlobSink, FileSink, type WrittenBlob } from '../../blob/sink.ts';
import { WRAPPER_SIZE, wrapperHeader, wrapperTrailer } from '../../tar-wrapper/wrapper.ts';
import { type ZFileForm, ZFileSink } from '../../zfile/sink.ts';

/** How a layer is stored. Absent members: neither packed nor wrapped. */
export interface LayerForm {
  readonly zfile?: ZFileForm;
  /** in a tar, as registries want layers */
  readonly tar?: boolean;
}

/** The form that every reader of the format knows. */
export const EXCHANGE_FORM: LayerForm = { zfile: { compression: 'lz4', blockSize: 4096 }, tar: true };

/** A file that takes an LSMT blob and stores it in its form. */
export interface LayerFile {
  /** Takes the bytes of the blob. */
  readonly sink: BlobSink;
  finish(): Promise<WrittenBlob>;
  /** Removes what was written. */
  abort(): Promise<void>;
}

export async function createLayerFile(path: string, form: LayerForm = {}): Promise<LayerFile> {
  const file = await FileSink.create(path);
  try {
    // The size of the payload is known at the end only.
    if (form.tar) await file.append(Buffer.alloc(WRAPPER_SIZE));
    const start = file.size;
    const packed = form.zfile === undefined ? undefined : await ZFileSink.begin(file, form.zfile);
    return {
      sink: packed ?? file,
      async finish() {
        await packed?.finish();
        if (form.tar) {
          const size = file.size - start;
          await file.append(wrapperTrailer(size));
          await file.patch(wrapperHeader(size), 0);
        }
        return file.finish();
      },
      abort: () => file.abort(),
    };
  } catch (error) {
    await file.abort();
    throw error;
  }
}
