/** WhyReport as text. */
import type { Check } from './check.ts';
import { aligned, type Cell, indented, type Paint, printable, type Tone } from './text.ts';
import type { WayLine, WhyReport } from './why.ts';

/** The report as lines. */
export const whyText = (report: WhyReport, paint: Paint): string[] => {
  const { pod, to, ways, decisions, checks, notes } = report;
  const where = pod.node === undefined ? 'on no node yet' : `on node ${pod.node}`;
  const rows = ways.length === 0 ? [['No policy applies to this traffic.']] : ways.map((way) => wayRow(way, report));
  const section = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : ['', paint(title, 'heading'), ...indented(lines)];
  const reasons = decisions.map(({ sentence }) => printable(sentence));
  return [
    paint(`Pod ${pod.name} ${where}${to === undefined ? '' : ` to ${to}`}`, 'heading'),
    ...indented(aligned(rows, paint)),
    ...section('Why', reasons),
    ...section('Checked', aligned(checks.map(checkRow), paint)),
    ...section('Note', notes.map(printable)),
  ];
};

const wayRow = (way: WayLine, { pod, to }: WhyReport): Cell[] => [
  to === undefined ? `${way.source} to ${way.to}` : way.source,
  { text: outcomeText(way, pod.node), tone: way.isFine ? 'good' : 'bad' },
  ...(way.policy === undefined ? [] : [byText(way)]),
];

const outcomeText = ({ outcome, isFine }: WayLine, ownNode: string | undefined): string => {
  switch (outcome.kind) {
    case 'gateway':
      return isFine
        ? `leaves with ${outcome.eip} through node ${outcome.node}`
        : `goes to node ${outcome.node}, which is not ready, and is lost there`;
    case 'drop':
      return 'is dropped';
    case 'nodeIp':
      return `leaves with the address of its own node ${ownNode}`;
    case 'leftAlone':
      return 'is left alone';
    default:
      return outcome satisfies never;
  }
};

const byText = ({ policy, gateway, outcome }: WayLine): string => {
  const slot = outcome.kind === 'gateway' ? `, slot ${outcome.slot}` : '';
  return `policy ${policy}${gateway === undefined ? '' : `, gateway ${gateway}`}${slot}`;
};

const results = {
  same: { text: 'ok', tone: 'good' },
  different: { text: 'DIFFERENT', tone: 'bad' },
  unknown: { text: 'unknown', tone: 'quiet' },
} as const satisfies Record<Check['result'], { text: string; tone: Tone }>;

const checkRow = ({ where, result, sentence }: Check): Cell[] => [results[result], where, sentence];
