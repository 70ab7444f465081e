import type { EnvdContext } from '../server/context.ts';
import { installBase64 } from './base64.ts';
import type { RpcServer } from './server.ts';

/** Loads the RPC part: base64 first, because the protobuf library looks for it once, when it is loaded. */
export async function loadRpc(context: EnvdContext): Promise<RpcServer> {
  installBase64();
  const { createRpcServer } = await import('./server.ts');
  return createRpcServer(context);
}
