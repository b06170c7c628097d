import { addresses, type Family, families, freeEips, type LabShape, ports } from './cluster/shape.ts';
import type { InstanceRecord } from './host/instance.ts';
import { isRunning } from './host/processes.ts';

/** What `lab status --json` prints: enough for a program to use the lab. */
export interface LabStatus {
  /** The families that nodes, pods and Services have; addresses of another one below do not exist. */
  readonly families: readonly Family[];
  readonly nodes: readonly {
    readonly name: string;
    readonly ipv4: string;
    readonly ipv6: string;
    readonly gateway: boolean;
  }[];
  readonly eips: { readonly ipv4: readonly string[]; readonly ipv6: readonly string[] };
  readonly outside: {
    readonly ipv4: string;
    readonly ipv6: string;
    readonly httpPort: number;
    readonly tcpPort: number;
    readonly udpPort: number;
  };
  /** Another address of the outside servers, with the same ports. */
  readonly elsewhere: { readonly ipv4: string; readonly ipv6: string };
}

/** The status of a lab as data. */
export function statusOf(shape: LabShape): LabStatus {
  return {
    families: shape.families,
    nodes: shape.nodes.map(({ name, ipv4, ipv6, isGateway }) => ({ name, ipv4, ipv6, gateway: isGateway })),
    eips: freeEips(),
    outside: { ...addresses.outside, httpPort: ports.http, tcpPort: ports.tcp, udpPort: ports.udp },
    elsewhere: addresses.elsewhere,
  };
}

/** The status of a lab for people: its nodes, what is free and where things are; dead programs are named. */
export function statusText(name: string, shape: LabShape, record: InstanceRecord, kubeconfig: string): string {
  const status = statusOf(shape);
  const dead = Object.entries(record.processes).filter(([, process]) => !isRunning(process));
  const rows = shape.nodes.map((node) => [
    node.name,
    node.isGateway ? 'gateway' : 'worker',
    record.power[node.name] ?? 'on',
    ...families.map((family) => (shape.families.includes(family) ? node[family] : '-')),
    node.proxyMode,
  ]);
  const { outside, elsewhere, eips } = status;
  return [
    `lab "${name}" is up`,
    '',
    ...table([['NODE', 'ROLE', 'POWER', 'IPV4', 'IPV6', 'KUBE-PROXY'], ...rows]),
    '',
    `free EIPs   ${eips.ipv4[0]}-${eips.ipv4.at(-1)}  ${eips.ipv6[0]}-${eips.ipv6.at(-1)}`,
    `outside     ${outside.ipv4}  ${outside.ipv6}  http ${outside.httpPort}, tcp ${outside.tcpPort}, udp ${outside.udpPort}`,
    `elsewhere   ${elsewhere.ipv4}  ${elsewhere.ipv6}  the same servers`,
    `kubeconfig  ${kubeconfig}`,
    ...dead.map(([program]) => `dead        ${program}`),
    '',
  ].join('\n');
}

/** Lines of a table with aligned columns. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
