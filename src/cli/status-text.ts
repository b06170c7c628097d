/** StatusReport as one screen of text. */
import type { OwnershipReport } from './owners.ts';
import type { GatewayLine, PoolLine, Problem, Ranges, StatusReport } from './status.ts';
import { aligned, type Cell, indented, type Paint, printable } from './text.ts';

// One screen: whoever has more of something than this wants a program to read it.
const ROWS = 20;
const RANGES = 6;

/** The report as lines. */
export const statusText = (report: StatusReport, paint: Paint): string[] => {
  const { problems, notes, programs, gateways, policyCount, nodeCount, ownership, clusterInfo } = report;
  const about = (kind: Problem['about']) => problems.filter((problem) => problem.about === kind);
  const section = (title: string, kind: Problem['about'], body: readonly string[]): string[] => [
    '',
    paint(title, 'heading'),
    ...indented([...body, ...shortened(about(kind)).flatMap((problem) => problemLines(problem, paint))]),
    ...more(about(kind).length),
  ];
  return [
    verdict(problems.length, paint),
    ...section('Programs', 'program', programTable(programs, paint)),
    ...section('Gateways', 'gateway', gatewayTable(gateways, paint)),
    ...ownerSection(ownership, paint),
    ...section(counted('Policies', policyCount, about('policy')), 'policy', []),
    ...section(counted('Nodes', nodeCount, about('node')), 'node', []),
    ...indented(shortened(notes).flatMap((note) => problemLines(note, paint, '-'))),
    ...section('Inside the cluster', 'clusterInfo', rangeTable(clusterInfo, paint)),
  ];
};

const verdict = (count: number, paint: Paint): string => {
  if (count === 0) return paint('Everything is fine.', 'good');
  return paint(`${count} ${count === 1 ? 'thing is' : 'things are'} not fine.`, 'bad');
};

const counted = (title: string, total: number, problems: readonly Problem[]): string => {
  const bad = new Set(problems.map(({ name }) => name)).size;
  return `${title}: ${total}, ${bad === 0 ? 'all fine' : `${bad} not fine`}`;
};

const shortened = <T>(rows: readonly T[]): readonly T[] => rows.slice(0, ROWS);

const more = (count: number): string[] => (count > ROWS ? [`  ... and ${count - ROWS} more; -o json lists all`] : []);

const problemLines = ({ name, reason, sentence, remedy }: Problem, paint: Paint, sign: '!' | '-' = '!'): string[] => [
  paint(printable(`${sign} ${name}${reason === undefined ? '' : `  ${reason}`}`), sign === '!' ? 'bad' : 'quiet'),
  ...indented([sentence, ...(remedy === undefined ? [] : [remedy])].map(printable), 4),
];

const headings = (...titles: readonly string[]): Cell[] => titles.map((text) => ({ text, tone: 'quiet' }));

const programTable = (programs: StatusReport['programs'], paint: Paint): string[] => {
  if (programs.length === 0) return [];
  const rows = programs.map(({ name, ready, wanted, isReady }): Cell[] => [
    name,
    { text: `${ready}/${wanted}`, tone: isReady ? 'good' : 'bad' },
  ]);
  return aligned([headings('NAME', 'READY'), ...rows], paint);
};

const gatewayTable = (gateways: readonly GatewayLine[], paint: Paint): string[] => {
  if (gateways.length === 0) return ['none'];
  const rows = shortened(gateways).flatMap((gateway): Cell[][] => {
    const first: Cell[] = [gateway.name, usage(gateway.ipv4), usage(gateway.ipv6)];
    if (gateway.nodes.length === 0) return [[...first, { text: 'no node', tone: 'bad' }]];
    return gateway.nodes.map((node, index) => [
      ...(index === 0 ? first : ['', '', '']),
      node.name,
      { text: node.phase, tone: node.phase === 'Ready' ? 'good' : 'bad' },
      String(node.policyCount),
      eipsText(node.eips),
    ]);
  });
  const titles = headings('NAME', 'IPV4 IN USE', 'IPV6 IN USE', 'NODE', 'PHASE', 'POLICIES', 'EIPS');
  return [...aligned([titles, ...rows], paint), ...more(gateways.length)];
};

const ownerSection = (ownership: OwnershipReport | undefined, paint: Paint): string[] => {
  if (ownership === undefined) return [];
  const { electorate, owners } = ownership;
  const { generation, voters, apiVotes, behind } = electorate;
  const votes = [...voters, ...(apiVotes ? ['the API server'] : [])].join(', ');
  const rows = shortened(owners).map(({ eip, owner, epoch, recorded }): Cell[] => [
    eip,
    owner === undefined ? { text: 'none', tone: 'bad' } : owner,
    String(epoch),
    ...(recorded === owner ? [] : [{ text: `recorded: ${recorded}`, tone: 'quiet' } as const]),
  ]);
  return [
    '',
    paint(printable(`Owners of EIPs, by votes of ${votes} (electorate ${generation})`), 'heading'),
    ...indented(
      behind.length === 0 ? [] : [printable(`nodes that have not applied this electorate yet: ${behind.join(', ')}`)],
    ),
    ...indented(owners.length === 0 ? ['none'] : aligned([headings('EIP', 'OWNER', 'EPOCH'), ...rows], paint)),
    ...more(owners.length),
  ];
};

const eipsText = (eips: readonly string[]): string =>
  eips.length <= RANGES
    ? eips.join(', ') || '-'
    : `${eips.slice(0, RANGES).join(', ')} and ${eips.length - RANGES} more`;

// The status gives larger numbers as this one.
const usage = ({ used, total }: PoolLine): string =>
  total === Number.MAX_SAFE_INTEGER ? `${used} of 2^53 or more` : `${used} of ${total}`;

const rangeTable = (ranges: Ranges | undefined, paint: Paint): string[] => {
  if (ranges === undefined) return [];
  const rows = Object.entries(ranges).map(([name, texts]) => {
    const shown = texts.slice(0, RANGES).join(' ');
    const rest = texts.length > RANGES ? ` and ${texts.length - RANGES} more` : '';
    return [name, `${shown}${rest}` || '-'];
  });
  return aligned(rows, paint);
};
