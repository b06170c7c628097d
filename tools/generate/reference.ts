/** The reference pages as Markdown. */
import { join } from 'node:path';
import { configSchema } from '../../src/api/config.ts';
import { allKindsCategory, schemaOf } from '../../src/api/crd.ts';
import { errorCodes } from '../../src/api/error.ts';
import { type KindDescription, type KindName, kinds } from '../../src/api/kinds.ts';
import { conditionTypes, type ReasonDescription } from '../../src/api/reasons.ts';
import { nodeReasons } from '../../src/api/reasons-node.ts';
import { policyReasons } from '../../src/api/reasons-policy.ts';
import { proxyReasons } from '../../src/api/reasons-proxy.ts';
import type { StructuralSchema } from '../../src/api/structural.ts';
import { kindNames, madeMark } from './crds.ts';
import { fieldRows } from './fields.ts';

/** Where the pages are. */
export const referenceFolder = join('docs', 'reference');
/** Where the examples are that the pages show. */
export const exampleFolder = join('docs', 'examples');

const header = `<!-- ${madeMark} -->\n`;

/** Returns path and text of every page. */
export function referenceOutputs(readExample: (name: string) => string): readonly (readonly [string, string])[] {
  const pages = new Map<string, readonly string[]>([
    ['README', indexPage()],
    ...kindNames.map((kind) => [pageName(kind), kindPage(kind, readExample)] as const),
    ['configuration', configurationPage(readExample)],
    ['conditions', conditionsPage()],
    ['errors', errorsPage()],
  ]);
  return [...pages].map(([name, parts]) => [join(referenceFolder, `${name}.md`), `${header}\n${parts.join('\n\n')}\n`]);
}

/** The file name of a kind's page and of its first example: EgressGateway -> egress-gateway. */
export function pageName(kind: KindName): string {
  return kind.replace(/([a-z]|BCS)([A-Z])/g, '$1-$2').toLowerCase();
}

function indexPage(): readonly string[] {
  const kindLinks = kindNames.map(
    (kind) => `| [${kind}](${pageName(kind)}.md) | ${schemaOf(kind).description ?? ''} |`,
  );
  return [
    '# Reference',
    ['| kind | what it is |', '|---|---|', ...kindLinks].join('\n'),
    '- [Configuration](configuration.md): the file that all processes read.\n- [Conditions and reasons](conditions.md): what a status says, and what to do about it.\n- [Admission](admission.md): what the webhooks refuse, fill in and warn about.\n- [Errors](errors.md): codes of errors that programs print.\n- [egctl](egctl.md): flags and fields of the command line.',
    'A rule in these pages is judged by the API server when an object is written, except where the text says otherwise. Rules that need other objects are judged by the admission webhook. The API server must be Kubernetes 1.31 or newer.',
  ];
}

function kindPage(kind: KindName, readExample: (name: string) => string): readonly string[] {
  const description: KindDescription = kinds[kind];
  const { group, version, plural, scope, shortNames, category } = description;
  const schema = schemaOf(kind);
  const sections = Object.entries(schema.properties ?? {}).filter(([name]) => !frameFields.includes(name));
  const rules = (schema['x-kubernetes-validations'] ?? []).map(({ message }) => `- ${message}`);
  return [
    `# ${kind}`,
    schema.description ?? '',
    [
      '| | |',
      '|---|---|',
      `| API version | \`${group}/${version}\` |`,
      `| scope | ${scope === 'Cluster' ? 'cluster' : 'namespace'} |`,
      `| names for kubectl | ${[plural, ...shortNames].map((name) => `\`${name}\``).join(', ')} |`,
      `| categories | \`${category}\`, \`${allKindsCategory}\` |`,
    ].join('\n'),
    ...(rules.length > 0 ? [rules.join('\n')] : []),
    ...exampleSection(readExample(`${pageName(kind)}.yaml`)),
    ...sections.flatMap(([name, child]) => fieldSection(name, child)),
  ];
}

const frameFields = ['apiVersion', 'kind', 'metadata'];

function fieldSection(name: string, node: StructuralSchema): readonly string[] {
  const root: StructuralSchema = node.items ? { type: 'object', properties: { [name]: node } } : node;
  const rules = node.items ? [] : (node['x-kubernetes-validations'] ?? []).map(({ message }) => `- ${message}`);
  const table = fieldTable(root);
  return [
    `## ${name}`,
    node.description ?? '',
    ...(rules.length > 0 ? [rules.join('\n')] : []),
    ...(table ? [table] : []),
  ];
}

function fieldTable(node: StructuralSchema): string | undefined {
  const rows = fieldRows(node);
  if (rows.length === 0) return undefined;
  return [
    '| field | type | default | meaning | rules |',
    '|---|---|---|---|---|',
    ...rows.map((row) => tableRow([`\`${row.path}\``, row.type, row.default, row.meaning, row.rules.join('<br>')])),
  ].join('\n');
}

function exampleSection(text: string): readonly string[] {
  return ['## Example', `\`\`\`yaml\n${text.trimEnd()}\n\`\`\``];
}

function configurationPage(readExample: (name: string) => string): readonly string[] {
  return [
    '# Configuration',
    'One file, the same for all processes; the chart keeps it in a ConfigMap. A key that is not known and a value that is not allowed are refused with a sentence that names the key, the value and what is allowed; the last good configuration stays in force.',
    ...exampleSection(readExample('configuration.yaml')),
    '## Keys',
    fieldTable(configSchema()) ?? '',
  ];
}

function conditionsPage(): readonly string[] {
  const types = Object.entries(conditionTypes).map(([type, meaning]) => tableRow([type, meaning]));
  return [
    '# Conditions and reasons',
    'A condition in a status has a type and a status: True, False or Unknown. Its reason is one of those below, and the same word stands in Events, metrics and the command line. `Event` and `Admission` mark reasons that are told in an Event or by the admission webhook.',
    'A fault of the `user` waits until an object is changed; a fault of the `world` is tried again by itself.',
    ['| type | when it is True |', '|---|---|', ...types].join('\n'),
    ...reasonSection('Gateways, policies and cluster info', policyReasons),
    ...reasonSection('Nodes', nodeReasons),
    ...reasonSection('Egress proxy', proxyReasons),
  ];
}

function reasonSection(title: string, list: Readonly<Record<string, ReasonDescription>>): readonly string[] {
  const rows = Object.entries(list).map(([name, { places, status, fault, sentence, remedy }]) =>
    tableRow([`\`${name}\``, places.join(', '), dashFor(status), dashFor(fault), sentence, remedy]),
  );
  return [
    `## ${title}`,
    ['| reason | where | status | fault | meaning | what to do |', '|---|---|---|---|---|---|', ...rows].join('\n'),
  ];
}

const dashFor = (text: string) => (text === 'none' ? '-' : text);

function errorsPage(): readonly string[] {
  const rows = Object.entries(errorCodes).map(([code, meaning]) => tableRow([`\`${code}\``, meaning]));
  return [
    '# Errors',
    'Programs print an error as a sentence for people and a code for machines. Match on the code; the sentence may change.',
    ['| code | meaning |', '|---|---|', ...rows].join('\n'),
  ];
}

function tableRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
