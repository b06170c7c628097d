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
  config: ['--config <file>', 'configuration file; the defaults without one'],
  kubeconfig: [
    '--kubeconfig <file>',
    'how to reach the API server; else the service account of the pod, or KUBECONFIG',
  ],
  logLevel: ['--log-level <level>', 'debug, info, warn, error, fatal or silent'],
  pageAuth: [
    '--page-auth <how>',
    'token: metrics and pages are for tokens that the API server allows to get them; none: for everybody',
  ],
  webhookAddress: ['--webhook-address <address>', 'where to serve admission webhooks'],
  webhookUrl: ['--webhook-url <url>', 'how the API server reaches the webhooks of a process outside the cluster'],
} as const;

/** Runs one command line and returns the exit code; a command line that cannot be understood is one sentence and 2. */
export async function main(argv: readonly string[]): Promise<number> {
  const program = new Command('sallyport')
    .description('The way out of a Kubernetes cluster.')
    .version(packageJson.version, '--version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'sallyport: ')) })
    .helpCommand(false);
  let exitCode: ExitCode = exitCodes.stopped;
  program
    .command('crds')
    .description('print the CustomResourceDefinitions, to be applied with kubectl apply --server-side -f -')
    .action(async () => {
      const { crdOf } = await import('./api/crd.ts');
      const { isKindName, kinds } = await import('./api/kinds.ts');
      const list = { apiVersion: 'v1', kind: 'List', items: Object.keys(kinds).filter(isKindName).map(crdOf) };
      process.stdout.write(`${JSON.stringify(list, null, 2)}\n`);
    });
  program
    .command('controller')
    .description('decide who leaves the cluster with which address, and answer admission reviews')
    .option(...option.config)
    .option(...option.kubeconfig)
    .option('--health-address <address>', 'where to serve health and metrics', controllerDefaults.healthAddress)
    .option(...option.pageAuth, controllerDefaults.pageAuth)
    .option(...option.webhookAddress, controllerDefaults.webhookAddress)
    .option(...option.webhookUrl)
    .option(
      '--namespace <name>',
      `where the lease and the certificates live (POD_NAMESPACE, else ${controllerDefaults.namespace})`,
    )
    .option(...option.logLevel, controllerDefaults.logLevel)
    .action(async (flags: ControllerFlags) => {
      const options = readFlags(flags, process.env);
      const { runController } = await import('./controller/main.ts');
      await runController(options, packageJson.version, process);
    });
  program
    .command('agent')
    .description('make the kernel of this node send pods out with their EIPs')
    .option('--node-name <name>', 'name of the Node that the agent runs on (NODE_NAME)')
    .option(
      '--namespace <name>',
      `where the key and the lease of agents live (POD_NAMESPACE, else ${agentDefaults.namespace})`,
    )
    .option(...option.config)
    .option(...option.kubeconfig)
    .option('--health-address <address>', 'where to serve health, metrics and /kernel', agentDefaults.healthAddress)
    .option(...option.pageAuth, agentDefaults.pageAuth)
    .option('--state-folder <folder>', 'for what must survive a restart, but not a reboot', agentDefaults.stateFolder)
    .option('--sysctl-root <folder>', 'where the kernel settings of the node are', agentDefaults.sysctlRoot)
    .option(...option.logLevel, agentDefaults.logLevel)
    .option('--clean', 'take everything of Sallyport off the node and end; needs no API server')
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
    .option('--engine-binary <path>', 'the program of the engine; else it is looked up in PATH')
    .option(...option.kubeconfig)
    .option('--nameserver <address...>', 'resolvers outside the cluster; else those of the pod')
    .option('--reserved-name <name...>', `names of the cluster itself (default: "${operatorDefaults.clusterDomain}")`)
    .option('--report-address <address>', 'where to serve the report, health and metrics', proxyDefaults.reportAddress)
    .option(...option.pageAuth, proxyDefaults.pageAuth)
    .option('--state-folder <folder>', 'for the files of the engine', proxyDefaults.stateFolder)
    .option(...option.logLevel, proxyDefaults.logLevel)
    .action(async (flags: ProxyFlags) => {
      const options = readProxyFlags(flags);
      const { runProxy } = await import('./proxy/main.ts');
      await runProxy(options, packageJson.version, process);
    });
  program
    .command('operator')
    .description('run the proxies that BCSEgress objects name, and tell how their rules stand')
    .option(...option.kubeconfig)
    .option('--health-address <address>', 'where to serve health and metrics', operatorDefaults.healthAddress)
    .option(...option.pageAuth, operatorDefaults.pageAuth)
    .option(...option.webhookAddress, operatorDefaults.webhookAddress)
    .option(...option.webhookUrl)
    .option(
      '--namespace <name>',
      `where the lease and the certificates live (POD_NAMESPACE, else ${operatorDefaults.namespace})`,
    )
    .option('--proxy-namespace <name...>', `where proxies may run (default: "${operatorDefaults.proxyNamespace}")`)
    .option('--default-proxy <json>', 'spec of the BCSEgressController that is made by itself (default: "{}")')
    .option(
      '--default-proxy-name <name>',
      'namespace/name of the one BCSEgressController that is made when a BCSEgress names it; none: no one is',
      operatorDefaults.defaultProxyName,
    )
    .option('--cluster-domain <name>', 'the DNS domain of the cluster', operatorDefaults.clusterDomain)
    .option('--reserved-name <name...>', 'more names that no rule may be about, with all below them')
    .option('--envoy-image <image>', 'image of proxies with Envoy', operatorDefaults.envoyImage)
    .option('--nginx-image <image>', 'image of proxies with nginx', operatorDefaults.nginxImage)
    .option('--image-pull-policy <policy>', 'of both images; else that of Kubernetes')
    .option('--image-pull-secret <name...>', 'Secrets in the namespaces of proxies')
    .option('--proxy-page-auth <how>', 'what proxies get as --page-auth', operatorDefaults.proxyPageAuth)
    .option('--report-token-file <file>', 'a token with which reports of proxies are read; else without one')
    .option('--proxy-service-account <name>', 'who proxies run as', operatorDefaults.proxyServiceAccount)
    .option('--nameserver <address...>', 'DNS servers outside the cluster for proxies; else those of their node')
    .option('--dns <kind>', 'coredns, or none to publish no names', operatorDefaults.dns)
    .option('--dns-config-map <name>', 'namespace/name of the Corefile of the cluster', operatorDefaults.dnsConfigMap)
    .option('--dns-server <address...>', 'the DNS of the cluster, to see whether names answer; else that of the pod')
    .option(...option.logLevel, operatorDefaults.logLevel)
    .action(async (flags: OperatorFlags) => {
      const options = readOperatorFlags(flags, process.env);
      const { runOperator } = await import('./operator/main.ts');
      await runOperator(options, packageJson.version, process);
    });
  program
    .command('await-clean')
    .description('wait until the agents have taken everything off their nodes; the last step of an uninstallation')
    .requiredOption('--daemonset <name>', 'the DaemonSet whose pods clean')
    .option('--namespace <name>', 'where it is (POD_NAMESPACE)', process.env.POD_NAMESPACE ?? 'default')
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
