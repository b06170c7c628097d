/** nginx passes the suites of engines, in a network namespace of its own. */
import { createNginx } from '../../src/proxy/nginx/engine.ts';
import { engineConformance } from '../../src/proxy/testing/conformance.ts';
import { engineSecurity } from '../../src/proxy/testing/security.ts';
import { enterOwnNamespace } from './own-namespace.ts';

enterOwnNamespace();

const exceptions = {
  connect: 'stock nginx answers CONNECT with 400',
  'client-http10-connect': 'stock nginx answers CONNECT with 400',
  'client-half-close-connect': 'stock nginx answers CONNECT with 400',
  'sources-connect': 'stock nginx answers CONNECT with 400',
  'upstream-login-kept': 'nginx makes a connection to the server for each request',
  'upstream-kept': 'nginx makes a connection to the server for each request',
  'client-trailers': 'nginx leaves trailers of requests out',
  'client-expect': 'nginx says 100 Continue itself when a request has a body',
  'change-untouched-connect': 'stock nginx answers CONNECT with 400',
  'change-removed': 'connections of a rule that is gone share their worker with those of rules that are not',
};

const program = '/usr/sbin/nginx';

engineConformance('nginx', createNginx, { program, exceptions });
engineSecurity('nginx', createNginx, {
  program,
  exceptions: {
    'security-headers': 'nginx removes Proxy-* but passes on the headers that Connection lists',
  },
});
