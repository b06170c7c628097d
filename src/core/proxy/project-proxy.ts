/** ProxyView from a BCSEgressController. Total; what cannot be read of its permissions permits nothing. */
import { BCSEgressControllerSpec } from '../../api/bcs-egress-controller.ts';
import { type Finding, finding } from '../cluster/finding.ts';
import { compileSelector, nothing } from '../cluster/labels.ts';
import { type Ip, parseIp } from '../ip/index.ts';
import { readSet } from '../project/address.ts';
import { type ApiObject, isBroken, readSpec } from '../project/api-object.ts';
import type { ProxyView, TenantView } from './view.ts';

type Tenant = NonNullable<BCSEgressControllerSpec['tenants']>[number];

/** The view of a BCSEgressController. */
export const projectProxy = (object: ApiObject): ProxyView => {
  const { metadata } = object;
  const namespace = metadata.namespace ?? '';
  const key = `${namespace}/${metadata.name}`;
  const who = `BCSEgressController ${key}`;
  const { value, faults } = readSpec(BCSEgressControllerSpec, { ...object, spec: object.spec ?? {} }, who);
  const problems = faults.map((fault) => fault.finding);
  const run = value ?? BCSEgressControllerSpec.parse({});
  const tenants = run.tenants?.map((tenant, index) => {
    const where = `${who}: tenants[${index}]`;
    // Half a permission could be more than was meant: a broken one permits nothing.
    return isBroken(faults, 'tenants', String(index)) ||
      faults.some(({ path }) => path[0] === 'tenants' && path[1] === index)
      ? nobody
      : tenantOf(tenant, where, problems);
  });
  return {
    key,
    namespace,
    name: metadata.name,
    generation: metadata.generation ?? 0,
    isDeleting: metadata.deletionTimestamp !== undefined,
    engine: run.engine,
    nameservers: (run.nameservers ?? []).flatMap((text) => readIp(text, `${who}: nameservers`, problems)),
    // What cannot be read opens nothing.
    isForAnyone: value !== undefined && run.sources === 'any',
    allowedRanges: readSet(run.allowedRanges, `${who}: allowedRanges`, problems),
    allowedNames: value === undefined ? [] : run.allowedNames?.map((name) => name.toLowerCase()),
    tenants: value === undefined ? [] : tenants,
    run,
    problems,
  };
};

const nobody: TenantView = { namespaces: [], selector: undefined, to: undefined, ports: undefined };

const tenantOf = (
  { namespaces = [], selector, domains, ranges, ports }: Tenant,
  where: string,
  problems: Finding[],
): TenantView => {
  const compiled = selector === undefined ? undefined : compileSelector(selector, `${where}.selector`);
  if (compiled !== undefined && !compiled.ok) problems.push(compiled.finding);
  return {
    namespaces,
    selector: compiled === undefined ? undefined : compiled.ok ? compiled.value : nothing,
    to:
      domains === undefined && ranges === undefined
        ? undefined
        : {
            domains: (domains ?? []).map((name) => name.toLowerCase()),
            ranges: readSet(ranges, `${where}.ranges`, problems),
          },
    ports: ports?.map(({ first, last }) => ({ first, last: last ?? first })),
  };
};

const readIp = (text: string, where: string, problems: Finding[]): Ip[] => {
  const ip = parseIp(text);
  if (ip.ok) return [ip.value];
  problems.push(finding('SpecInvalid', `${where}: ${ip.message}`));
  return [];
};
