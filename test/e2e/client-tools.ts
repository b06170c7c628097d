/** The files that client-sites.ts serves, made with the tools that will fetch them, and the clients themselves. */
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { must } from '../../lab/host/command.ts';
import {
  goSource,
  javaSource,
  nodeFetch,
  pythonGrpc,
  pythonHttpx,
  pythonRequests,
  pythonUrllib,
  pythonWebsocket,
} from './client-programs.ts';
import { sitePorts } from './client-sites.ts';

/** The host of the site; every client is asked for something that only this site has. */
export const site = 'site.clients.test';
const plain = `http://${site}:${sitePorts.plain}`;
const secure = `https://${site}:${sitePorts.tls}`;

/** Makes everything in a folder of its own; takes some seconds. */
export const makeSite = async (): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-clients-'));
  const at = (...path: readonly string[]): string => join(folder, ...path);
  for (const each of ['site/simple/sallyportdemo', 'site/npm', 'site/apt', 'work'])
    mkdirSync(at(each), { recursive: true });
  writeFileSync(at('site', 'index.html'), 'the site answers\n');
  writeFileSync(at('main.go'), goSource);
  writeFileSync(at('with-urllib.py'), pythonUrllib);
  writeFileSync(at('with-requests.py'), pythonRequests);
  writeFileSync(at('with-httpx.py'), pythonHttpx);
  writeFileSync(at('with-grpc.py'), pythonGrpc);
  writeFileSync(at('with-websocket.py'), pythonWebsocket);
  writeFileSync(at('JavaClient.java'), javaSource);
  writeFileSync(at('fetch.mjs'), nodeFetch);
  const sh = (what: string, script: string) =>
    must(what, ['/bin/sh', '-ec', script], { timeoutMs: 300_000, env: { ...process.env, HOME: folder } });
  await sh(
    'make a certificate',
    `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=${site} -addext subjectAltName=DNS:${site} -keyout ${at('key.pem')} -out ${at('cert.pem')} 2>&1`,
  );
  await sh(
    'make a repository',
    `cd ${at('work')}; git init -q; echo hello > hello; git add hello
     git -c user.name=a -c user.email=a@example.com commit -qm first
     git clone -q --bare . ${at('site', 'repo.git')}; git -C ${at('site', 'repo.git')} update-server-info`,
  );
  const wheel = 'sallyportdemo-1.0-py3-none-any.whl';
  writeFileSync(
    at('wheel.py'),
    `import zipfile
with zipfile.ZipFile(${JSON.stringify(at('site', 'simple', 'sallyportdemo', wheel))}, 'w') as wheel:
    info = 'sallyportdemo-1.0.dist-info/'
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: sallyportdemo\\nVersion: 1.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')
`,
  );
  await sh('make a wheel', `/usr/bin/python3 ${at('wheel.py')}`);
  writeFileSync(at('site', 'simple', 'sallyportdemo', 'index.html'), `<a href="${wheel}">${wheel}</a>`);
  const versions = { '1.0.0': { name: 'sallyport-demo', version: '1.0.0', dist: { tarball: 'SITE/npm/demo.tgz' } } };
  const page = { name: 'sallyport-demo', 'dist-tags': { latest: '1.0.0' }, versions };
  writeFileSync(at('site', 'npm', 'sallyport-demo'), JSON.stringify(page));
  writeFileSync(at('package.json'), JSON.stringify({ name: 'sallyport-demo', version: '1.0.0' }));
  await sh('make a tarball', `cd ${folder}; mkdir package; cp package.json package; tar czf site/npm/demo.tgz package`);
  writeFileSync(at('site', 'apt', 'Packages'), '');
  writeFileSync(at('sources.list'), `deb [trusted=yes] ${plain}/apt ./\n`);
  await sh(
    'build the Go client',
    `cd ${folder}; CGO_ENABLED=0 GOFLAGS=-mod=mod GOCACHE=\${GOCACHE:-/root/.cache/go-build} go build -o go-client main.go`,
  );
  if (hasJava) await sh('build the Java client', `cd ${folder}; ${javac} JavaClient.java`);
  return folder;
};

const javac = '/usr/bin/javac';
/** A JDK is large, and of many versions: the one of the machine is used if there is one. */
export const hasJava = existsSync(javac);

/** A client: what is run in a pod, and what it must print. */
export interface Client {
  readonly name: string;
  readonly argv: readonly string[];
  readonly prints: RegExp;
  /** Why it cannot be run on this machine. */
  readonly skip?: string;
}

const answers = /the site answers/;
const curl = ['curl', '-sSk', '--max-time', '20'];

/** A command in a new folder each time: pip, npm and apt ask no server for what they have already. */
const inFreshFolder = (folder: string, command: string): readonly string[] => [
  'sh',
  '-c',
  `cd "$(mktemp -d -p "$0")" && exec ${command} "$@"`,
  folder,
];

/** curl of Debian 12 knows no WebSocket, but can ask for one; it reads what comes until its time is over. */
const upgrade = [
  ...['curl', '-sSiN', '--max-time', '5', '-H', 'Connection:Upgrade', '-H', 'Upgrade:websocket'],
  ...['-H', 'Sec-WebSocket-Version:13', '-H', 'Sec-WebSocket-Key:c2FsbHlwb3J0LXRlc3Qta2V5'],
].join(' ');

/** Clients that ask for plain HTTP through HTTP_PROXY, or for TLS by CONNECT through HTTPS_PROXY. */
export const proxyClients = (
  folder: string,
  node: string,
  npm: string,
  proxy: string,
  isTls: boolean,
): readonly Client[] => {
  const base = isTls ? secure : plain;
  const url = `${base}/`;
  const file = (name: string): string => join(folder, name);
  return [
    { name: 'curl', argv: [...curl, url], prints: answers },
    ...(isTls
      ? [{ name: 'curl with HTTP/2', argv: [...curl, '--http2', '-w', 'HTTP/%{http_version}', url], prints: /HTTP\/2/ }]
      : []),
    {
      name: 'wget',
      argv: ['wget', '-q', '-O', '-', '--no-check-certificate', '--timeout=20', '--tries=1', url],
      prints: answers,
    },
    { name: 'urllib of Python', argv: ['/usr/bin/python3', file('with-urllib.py'), url], prints: answers },
    { name: 'requests of Python', argv: ['/usr/bin/python3', file('with-requests.py'), url], prints: answers },
    { name: 'httpx of Python', argv: ['/usr/bin/python3', file('with-httpx.py'), url], prints: answers },
    {
      name: 'java.net.http',
      argv: ['java', '-Xmx128m', '-cp', folder, 'JavaClient', url, proxy],
      prints: isTls ? /200 HTTP_2 the site answers/ : /200 HTTP_1_1 the site answers/,
      ...(hasJava ? {} : { skip: 'there is no JDK on this machine' }),
    },
    {
      name: 'pip',
      argv: [
        ...inFreshFolder(folder, '/usr/bin/python3 -m pip download -d .'),
        ...['--no-deps', '--no-cache-dir', '--disable-pip-version-check'],
        ...['--trusted-host', site, '--index-url', `${base}/simple/`, 'sallyportdemo'],
      ],
      prints: /Saved .*sallyportdemo-1\.0/,
    },
    {
      name: 'fetch of Node',
      argv: ['env', 'NODE_USE_ENV_PROXY=1', 'NODE_TLS_REJECT_UNAUTHORIZED=0', node, file('fetch.mjs'), url],
      prints: answers,
    },
    {
      name: 'git',
      argv: ['git', '-c', 'http.sslVerify=false', 'ls-remote', `${base}/repo.git`],
      prints: /[0-9a-f]{40}\s+HEAD/,
    },
    {
      name: 'npm',
      argv: [
        ...inFreshFolder(folder, `${node} ${npm} view sallyport-demo version --cache=npm`),
        ...[`--registry=${base}/npm/`, '--strict-ssl=false', '--fetch-retries=0'],
      ],
      prints: /1\.0\.0/,
    },
    { name: 'net/http of Go', argv: [file('go-client'), url], prints: answers },
    ...(isTls
      ? [
          {
            name: 'gRPC of Python',
            argv: [
              ...['env', 'GRPC_DNS_RESOLVER=native', '/usr/bin/python3', file('with-grpc.py')],
              ...[`${site}:${sitePorts.tls}`, file('cert.pem')],
            ],
            prints: /grpc-works/,
          },
          {
            name: 'websocket-client of Python',
            argv: ['/usr/bin/python3', file('with-websocket.py'), `wss://${site}:${sitePorts.tls}/`],
            prints: /websocket-works/,
          },
        ]
      : [
          {
            name: 'WebSocket in absolute form',
            argv: ['sh', '-c', `${upgrade} ${url} || true`],
            prints: /101 .*websocket-works/s,
          },
          { name: 'curl with HTTP/1.0', argv: [...curl, '--http1.0', url], prints: answers },
          {
            name: 'apt-get',
            argv: [
              ...inFreshFolder(folder, 'apt-get update -o "Dir::State::lists=$PWD"'),
              ...['-o', `Dir::Etc::sourcelist=${file('sources.list')}`, '-o', 'Dir::Etc::sourceparts=-'],
              ...['-o', 'APT::Sandbox::User=root', '-o', 'Acquire::Retries=0'],
            ],
            prints: new RegExp(`Get:\\d+ ${plain}/apt`),
          },
        ]),
  ];
};

/** Clients that open a tunnel themselves and speak through it. `proxy` is host:port. */
export const tunnelClients = (proxy: string): readonly Client[] => {
  const [proxyHost = '', proxyPort = ''] = proxy.split(':');
  const ping = (client: string): string[] => ['sh', '-c', `(printf 'PING\\r\\n'; sleep 3) | timeout 10 ${client}`];
  const ask = `printf 'GET / HTTP/1.1\\r\\nHost: ${site}\\r\\nConnection: close\\r\\n\\r\\n'; sleep 3`;
  const through = `openssl s_client -quiet -proxy ${proxy} -servername ${site} -connect ${site}:${sitePorts.tls}`;
  return [
    { name: 'openssl s_client -proxy', argv: ['sh', '-c', `(${ask}) | ${through} 2>/dev/null`], prints: answers },
    { name: 'nc -X connect', argv: ping(`nc -X connect -x ${proxy} ${site} ${sitePorts.redis}`), prints: /PONG/ },
    {
      name: 'ncat --proxy',
      argv: ping(`ncat --proxy ${proxy} --proxy-type http ${site} ${sitePorts.redis}`),
      prints: /PONG/,
    },
    {
      name: 'socat PROXY',
      argv: ping(`socat - PROXY:${proxyHost}:${site}:${sitePorts.redis},proxyport=${proxyPort}`),
      prints: /PONG/,
    },
  ];
};

/** Clients of TCP rules. `host` is the Service of the rules. */
export const tcpClients = (postgres: string, redis: string): readonly Client[] => [
  {
    name: 'psql',
    argv: [
      'psql',
      `postgresql://user@${postgres}:${sitePorts.postgres}/db?connect_timeout=10&gssencmode=disable`,
      '-Atc',
      'select 1',
    ],
    prints: /psql-works/,
  },
  { name: 'redis-cli', argv: ['redis-cli', '-h', redis, '-p', String(sitePorts.redis), 'ping'], prints: /PONG/ },
  {
    name: 'nc',
    argv: ['sh', '-c', `(printf 'PING\\r\\n'; sleep 2) | timeout 10 nc ${redis} ${sitePorts.redis}`],
    prints: /PONG/,
  },
];
