import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { BufferPool } from './buffer-pool.ts';
import { ReplyStream, type Room } from './reply-stream.ts';

const SOAK = process.env.AENV_SOAK === '1';

/** A socket that keeps what it was given and looks at it only when it is let go. */
class SlowSocket extends Writable {
  readonly received: Buffer[] = [];
  #waiting: (() => void)[] = [];

  constructor() {
    super({ highWaterMark: 1 });
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#waiting.push(() => {
      // A copy is made at the very end: until then the memory must not be used for anything else.
      this.received.push(Buffer.from(chunk));
      done();
    });
  }

  async letGo(): Promise<void> {
    for (const next of this.#waiting.splice(0)) next();
    await new Promise((resolve) => setImmediate(resolve));
  }

  async letAllGo(): Promise<void> {
    while (this.writableLength > 0) await this.letGo();
  }
}

type Action =
  | { readonly kind: 'append' | 'postpone'; readonly size: number }
  | { readonly kind: 'flush' | 'send' | 'go' };

const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('append' as const, 'postpone' as const),
    size: fc.oneof(fc.integer({ min: 9, max: 5000 }), fc.integer({ min: 9, max: 400_000 })),
  }),
  fc.constantFrom('flush' as const, 'send' as const, 'go' as const).map((kind) => ({ kind })),
);

/** A reply that can be recognised: its number, its length, and as many bytes of its number. */
function fill(bytes: Buffer, number: number): void {
  bytes.fill(number & 0xff);
  bytes.writeUInt32BE(number, 0);
  bytes.writeUInt32BE(bytes.length, 4);
}

test('every reply arrives whole and once, whenever its data comes and however slowly the client reads', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 60 }), async (actions) => {
      const socket = new SlowSocket();
      let sent = 0;
      const stream = new ReplyStream(socket, new BufferPool(1 << 20), (cost) => {
        sent += cost;
      });
      const postponed: { room: Room; number: number }[] = [];
      let count = 0;
      const sendOne = () => {
        const next = postponed.shift();
        if (next === undefined) return;
        fill(next.room.bytes, next.number);
        stream.send(next.room, 1);
      };
      for (const step of actions) {
        if (step.kind === 'flush') stream.flush();
        else if (step.kind === 'send') sendOne();
        else if (step.kind === 'go') await socket.letGo();
        else if (step.kind === 'append') {
          const reply = Buffer.alloc(step.size);
          fill(reply, ++count);
          stream.append(reply, 1);
        } else if (step.kind === 'postpone') {
          const room = stream.room(step.size);
          stream.postpone(room);
          postponed.push({ room, number: ++count });
        }
      }
      while (postponed.length > 0) sendOne();
      stream.close();
      await socket.letAllGo();
      const bytes = Buffer.concat(socket.received);
      const seen = new Set<number>();
      for (let at = 0; at < bytes.length; ) {
        const [number, length] = [bytes.readUInt32BE(at), bytes.readUInt32BE(at + 4)];
        const body = bytes.subarray(at + 8, at + length);
        assert.ok(body.every((byte) => byte === (number & 0xff)));
        seen.add(number);
        at += length;
      }
      assert.equal(seen.size, count);
      assert.equal(sent, count);
    }),
    { seed: 3, numRuns: SOAK ? 3000 : 100 },
  );
});
