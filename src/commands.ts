/** The one program of Sallyport: its first argument says which part of it runs. Mains are loaded when they are needed. */
import { Command, CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { type AgentFlags, agentDefaults, readAgentFlags } from './agent/flags.ts';
import { EgressError } from './api/error.ts';
import { type ControllerFlags, controllerDefaults, readFlags } from './controller/flags.ts';
import { type OperatorFlags, operatorDefaults, readOperatorFlags } from './operator/flags.ts';
import { type ProxyFlags, proxyDefaults, readProxyFlags } from './proxy/flags.ts';
import type { AwaitCleanOptions } from './removal/main.ts';
import { type ExitCode, exitCodes } from './runtime/process/lifecycle.ts';

/** What several commands take in the same words; a default follows where there is one. */
const option = {
  config: ['--config <file>', 'configuration file; without it, every key has its default'],
  kubeconfig: [
    '--kubeconfig <file>',
    'kubeconfig of the API server; default: KUBECONFIG, then the service account of the pod, then ~/.kube/config',
  ],
  logLevel: ['--log-level <level>', 'debug, info, warn, error, fatal or silent'],
  pageAuth: [
    '--page-auth <how>',
    'who may read metrics and pages; token: holders of a token that the API server allows to get them; none: everyone',
  ],
  webhookAddress: ['--webhook-address <address>', 'address of the admission webhooks'],
  webhookUrl: [
    '--webhook-url <url>',
    'URL at which the API server reaches the webhooks of a process outside the cluster',
  ],
} as const;

/** Runs one command line and returns the exit code; a command line that cannot be understood is one sentence and 2. */
export async function main(argv: readonly string[]): Promise<number> {
  const program = new Command('sallyport')
    .description('Egress gateway and egress proxy for Kubernetes.')
    .version(packageJson.version, '--version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'sallyport: ')) })
    .helpCommand(false);
  let exitCode: ExitCode = exitCodes.stopped;
  program
    .command('crds')
    .description('print the CustomResourceDefinitions for kubectl apply --server-side -f -')
    .action(async () => {
      const { crdOf } = await import('./api/crd.ts');
      const { isKindName, kinds } = await import('./api/kinds.ts');
      const list = { apiVersion: 'v1', kind: 'List', items: Object.keys(kinds).filter(isKindName).map(crdOf) };
      process.stdout.write(`${JSON.stringify(list, null, 2)}\n`);
    });
  program
    .command('controller')
    .description('decide which pod leaves the cluster with which address, and answer admission reviews')
    .option(...option.config)
    .option(...option.kubeconfig)
    .option('--health-address <address>', 'address of health and metrics', controllerDefaults.healthAddress)
    .option(...option.pageAuth, controllerDefaults.pageAuth)
    .option(...option.webhookAddress, controllerDefaults.webhookAddress)
    .option(...option.webhookUrl)
    .option(
      '--namespace <name>',
      `namespace of the Lease and the certificates (default: POD_NAMESPACE, then ${controllerDefaults.namespace})`,
    )
    .option(...option.logLevel, controllerDefaults.logLevel)
    .action(async (flags: ControllerFlags) => {
      const options = readFlags(flags, process.env);
      const { runController } = await import('./controller/main.ts');
      await runController(options, packageJson.version, process);
    });
  program
    .command('agent')
    .description('configure the kernel of this node, so that pods leave with their EIPs')
    .option('--node-name <name>', 'name of the Node that the agent runs on (NODE_NAME)')
    .option(
      '--namespace <name>',
      `namespace of the Secret and the Lease of agents (default: POD_NAMESPACE, then ${agentDefaults.namespace})`,
    )
    .option(...option.config)
    .option(...option.kubeconfig)
    .option('--health-address <address>', 'address of health, metrics and /kernel', agentDefaults.healthAddress)
    .option(...option.pageAuth, agentDefaults.pageAuth)
    .option(
      '--state-folder <folder>',
      'folder for state that must survive a restart, but not a reboot',
      agentDefaults.stateFolder,
    )
    .option('--sysctl-root <folder>', 'folder of the kernel settings of the node', agentDefaults.sysctlRoot)
    .option(...option.logLevel, agentDefaults.logLevel)
    .option('--clean', 'remove everything of Sallyport from the node and exit; needs no API server')
    .action(async (flags: AgentFlags) => {
      const options = readAgentFlags(flags, process.env);
      const { runAgent, runClean } = await import('./agent/main.ts');
      if (flags.clean) exitCode = await runClean(options);
      else await runAgent(options, packageJson.version, process);
    });
  program
    .command('proxy')
    .description('serve the rules of a BCSEgressController: TCP ports and HTTP hosts outside the cluster')
    .option('--controller <namespace/name>', 'the BCSEgressController whose rules are served')
    .option('--engine <name>', 'envoy or nginx', proxyDefaults.engine)
    .option('--engine-binary <path>', 'path of the engine; default: look it up in PATH')
    .option(...option.kubeconfig)
    .option('--nameserver <address...>', 'resolvers outside the cluster; default: those of the pod')
    .option(
      '--reserved-name <name...>',
      `domain names of the cluster itself (default: "${operatorDefaults.clusterDomain}")`,
    )
    .option('--report-address <address>', 'address of the report, health and metrics', proxyDefaults.reportAddress)
    .option(...option.pageAuth, proxyDefaults.pageAuth)
    .option('--state-folder <folder>', 'folder for the files of the engine', proxyDefaults.stateFolder)
    .option(...option.logLevel, proxyDefaults.logLevel)
    .action(async (flags: ProxyFlags) => {
      const options = readProxyFlags(flags);
      const { runProxy } = await import('./proxy/main.ts');
      await runProxy(options, packageJson.version, process);
    });
  program
    .command('operator')
    .description('run the proxies that BCSEgress objects name, and report the state of their rules')
    .option(...option.kubeconfig)
    .option('--health-address <address>', 'address of health and metrics', operatorDefaults.healthAddress)
    .option(...option.pageAuth, operatorDefaults.pageAuth)
    .option(...option.webhookAddress, operatorDefaults.webhookAddress)
    .option(...option.webhookUrl)
    .option(
      '--namespace <name>',
      `namespace of the Lease and the certificates (default: POD_NAMESPACE, then ${operatorDefaults.namespace})`,
    )
    .option(
      '--proxy-namespace <name...>',
      `namespaces in which proxies may run (default: "${operatorDefaults.proxyNamespace}")`,
    )
    .option('--default-proxy <json>', 'spec of the BCSEgressController that the operator creates (default: "{}")')
    .option(
      '--default-proxy-name <name>',
      'namespace/name of the BCSEgressController that the operator creates when a BCSEgress names it; none: it creates none',
      operatorDefaults.defaultProxyName,
    )
    .option('--cluster-domain <name>', 'the DNS domain of the cluster', operatorDefaults.clusterDomain)
    .option('--reserved-name <name...>', 'more domain names that rules may not use, with all names below them')
    .option('--envoy-image <image>', 'image of Envoy proxies', operatorDefaults.envoyImage)
    .option('--nginx-image <image>', 'image of nginx proxies', operatorDefaults.nginxImage)
    .option('--image-pull-policy <policy>', 'pull policy of both images; default: that of Kubernetes')
    .option('--image-pull-secret <name...>', 'names of pull Secrets in the namespaces of proxies')
    .option('--proxy-page-auth <how>', '--page-auth of the proxies', operatorDefaults.proxyPageAuth)
    .option(
      '--report-token-file <file>',
      'file with the token that the operator sends to read reports of proxies; default: no token',
    )
    .option('--proxy-service-account <name>', 'service account of the proxies', operatorDefaults.proxyServiceAccount)
    .option('--nameserver <address...>', 'DNS servers outside the cluster for proxies; default: those of their node')
    .option('--dns <kind>', 'coredns: publish names there; none: publish no names', operatorDefaults.dns)
    .option(
      '--dns-config-map <name>',
      'namespace/name of the ConfigMap with the Corefile',
      operatorDefaults.dnsConfigMap,
    )
    .option(
      '--dns-server <address...>',
      'DNS servers of the cluster, to check that published names resolve; default: those of the pod',
    )
    .option(...option.logLevel, operatorDefaults.logLevel)
    .action(async (flags: OperatorFlags) => {
      const options = readOperatorFlags(flags, process.env);
      const { runOperator } = await import('./operator/main.ts');
      await runOperator(options, packageJson.version, process);
    });
  program
    .command('await-clean')
    .description('wait until the agents have cleaned their nodes; the last step of an uninstallation')
    .requiredOption('--daemonset <name>', 'the DaemonSet whose pods clean their nodes')
    .option('--namespace <name>', 'its namespace (POD_NAMESPACE)', process.env.POD_NAMESPACE ?? 'default')
    .option('--limit <seconds>', 'how long to wait', Number, 240)
    .option(...option.kubeconfig)
    .action(async (flags: AwaitCleanOptions) => {
      const { runAwaitClean } = await import('./removal/main.ts');
      exitCode = await runAwaitClean(flags, packageJson.version);
    });
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.stopped : exitCodes.badInput;
    if (error instanceof EgressError) {
      process.stderr.write(`sallyport: ${error.message}\n`);
      return exitCodes.badInput;
    }
    throw error;
  }
}
