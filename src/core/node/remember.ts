/**
 * Makes a pure function remember its last call: with the same arguments it gives the same value again, without work. With
 * `isSame`, a result that says the same as the last one is replaced by it, so that those who depend on it have no work
 * either: a tunnel is written with every heartbeat, and next to nothing follows from that.
 */
export const remember = <Args extends readonly unknown[], Result>(
  compute: (...args: Args) => Result,
  isSame: (a: Result, b: Result) => boolean = () => false,
): ((...args: Args) => Result) => {
  let last: { readonly args: Args; readonly result: Result } | undefined;
  return (...args) => {
    if (last?.args.every((arg, index) => arg === args[index])) return last.result;
    const result = compute(...args);
    last = { args, result: last !== undefined && isSame(last.result, result) ? last.result : result };
    return last.result;
  };
};
