/** Search domains, as resolv.conf(5) lists them for pods: a short name is asked for below each of them. */

/** The search domains in the text of a resolv.conf; the last line counts. `.` is none. */
export const searchDomainsIn = (text: string): string[] => {
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/));
  const last = lines.findLast(([word]) => word === 'search' || word === 'domain');
  return (last ?? []).slice(1).flatMap((word) => {
    const name = word.toLowerCase().replace(/\.$/, '');
    return name === '' ? [] : [name];
  });
};
