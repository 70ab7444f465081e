/**
 * A program that sees what becomes of it: it counts, in a file without a name and over a connection to itself; draws
 * random numbers all the time; keeps a connection to the outside open, and takes those that come. Told by SIGUSR1, it
 * reseeds its own generator.
 */
export const WITNESS = `
import json, os, random, signal, socket, threading, time

held = open('/root/held', 'w+')
os.unlink('/root/held')
state = {'pid': os.getpid(), 'n': 0, 'whole': True, 'loopback': 0, 'outside': [], 'inbound': 0, 'seeded': 0}
random.seed(1)

def reseed(*_):
    random.seed(os.urandom(32))
    state['seeded'] += 1

signal.signal(signal.SIGUSR1, reseed)

def outside():
    while True:
        try:
            with socket.create_connection(('169.254.0.22', 53), 5) as s:
                s.settimeout(None)
                state['connected'] = True
                how = 'closed' if s.recv(1) == b'' else 'data'
        except OSError as error:
            how = type(error).__name__
        state['outside'] = (state['outside'] + [how])[-20:]
        time.sleep(0.05)

def inbound():
    server = socket.create_server(('0.0.0.0', 8000), backlog=16)
    while True:
        peer, _ = server.accept()
        state['inbound'] += 1
        threading.Thread(target=hold, args=(peer,), daemon=True).start()

def hold(peer):
    try:
        peer.recv(4096)
        peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 1000\\r\\n\\r\\nbegins')
        while peer.recv(4096):
            pass
    except OSError:
        pass
    state['inbound'] -= 1

server = socket.create_server(('127.0.0.1', 0))
here = socket.create_connection(server.getsockname())
there, _ = server.accept()
for work in (outside, inbound):
    threading.Thread(target=work, daemon=True).start()
ticks = open('/run/ticks', 'w')
while True:
    state['n'] += 1
    n = state['n']
    while True:
        # Both clocks and the number are of one moment, or else the program may have been stopped between them.
        monotonic, wall, drawn = time.monotonic_ns(), time.time_ns(), os.urandom(8).hex()
        if time.monotonic_ns() - monotonic < 1_000_000:
            break
    ticks.write(f'{n} {monotonic} {wall} {drawn}\\n')
    ticks.flush()
    if n % 10 == 0:
        held.write(f'{n}\\n')
        held.flush()
        held.seek(0)
        state['whole'] = held.read().split() == [str(i) for i in range(10, n + 1, 10)]
        here.sendall(b'%d\\n' % n)
        state['loopback'] = int(there.recv(64))
        with open('/run/witness.new', 'w') as f:
            json.dump(state | {'draw': random.random()}, f)
        os.rename('/run/witness.new', '/run/witness')
    time.sleep(0.02)
`;

/** One turn of the program: equal lines are of a common past, since nobody reads a clock of nanoseconds equal twice. */
export interface Tick {
  readonly line: string;
  readonly monotonic: bigint;
  readonly wall: bigint;
  readonly random: string;
}

/** By number. */
export function readTicks(text: string): Map<number, Tick> {
  const ticks = new Map<number, Tick>();
  for (const line of text.split('\n')) {
    const [n, monotonic = '', wall = '', random] = line.split(' ');
    if (random?.length === 16) ticks.set(Number(n), { line, monotonic: BigInt(monotonic), wall: BigInt(wall), random });
  }
  return ticks;
}

/** The first turn that is not of the past that both have in common; undefined when there is none. */
export function firstOwnTick(mine: ReadonlyMap<number, Tick>, other: ReadonlyMap<number, Tick>): Tick | undefined {
  for (const [n, tick] of mine) {
    const theirs = other.get(n);
    if (theirs === undefined || theirs.line !== tick.line) return tick;
  }
  return undefined;
}

/** Turns of two programs, each after their common past, that drew the same number. */
export function sameDraws(one: ReadonlyMap<number, Tick>, two: ReadonlyMap<number, Tick>): number {
  const lines = new Set([...two.values()].map(({ line }) => line));
  const drawn = new Set([...two.values()].map(({ random }) => random));
  return [...one.values()].filter(({ line, random }) => drawn.has(random) && !lines.has(line)).length;
}
