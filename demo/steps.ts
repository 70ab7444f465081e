/** Runs named steps one after the other and prints the time and the result of each. */
export class Steps {
  #count = 0;

  async run<T>(name: string, step: () => Promise<T>): Promise<T> {
    const number = ++this.#count;
    console.log(`\n[${number}] ${name}`);
    const start = performance.now();
    const result = await step();
    const seconds = ((performance.now() - start) / 1000).toFixed(2);
    if (typeof result === 'string') console.log(result.trimEnd().replaceAll(/^/gm, '      '));
    console.log(`      ${seconds} s`);
    return result;
  }
}
