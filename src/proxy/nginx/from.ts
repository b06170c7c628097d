/** `$from` is the client as a part of a name (dns/client-name.ts): dashes stand for the colons of IPv6. */
export const fromMap: readonly string[] = [
  '  map $remote_addr $from {',
  '    default nobody;',
  String.raw`    "~^(?:::ffff:)?((?:\d+\.){3}\d+)$" $1;`,
  ...Array.from({ length: 6 }, (_, index) => {
    const groups = Array.from({ length: index + 3 }, (_unused, place) => place + 1);
    return `    "~^${groups.map(() => '([0-9a-f]*)').join(':')}$" "${groups.map((place) => `$${place}`).join('-')}";`;
  }),
  '  }',
];
