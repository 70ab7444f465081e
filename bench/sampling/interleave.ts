import type { Bench } from '../measurement.ts';

/**
 * Takes samples of two things in turn, A B B A A B …, so that whatever else the machine does falls on both alike. One
 * sample of each goes first and is thrown away: it fills the page cache.
 * @param describe what to tell of a round, for whoever waits
 */
export async function interleave<A, B>(
  bench: Bench,
  rounds: number,
  a: () => Promise<A>,
  b: () => Promise<B>,
  describe: (a: A, b: B) => string,
): Promise<{ a: A[]; b: B[] }> {
  const samples: { a: A[]; b: B[] } = { a: [], b: [] };
  for (let round = 0; round <= rounds; round++) {
    bench.signal.throwIfAborted();
    const first = round % 2 === 0 ? await a() : undefined;
    const sampleB = await b();
    const sampleA = first ?? (await a());
    bench.say(`${round === 0 ? 'warm-up' : `${round}/${rounds}`}: ${describe(sampleA, sampleB)}`);
    if (round === 0) continue;
    samples.a.push(sampleA);
    samples.b.push(sampleB);
  }
  return samples;
}
