/** Envoy as an engine of the proxy: the real program, real connections. */
import { envoyProgram } from '../../lab/setup/envoy.ts';
import { createEnvoy } from '../../src/proxy/envoy/engine.ts';
import { engineConformance } from '../../src/proxy/testing/conformance.ts';
import { engineSecurity } from '../../src/proxy/testing/security.ts';
import { enterOwnNamespace } from './own-namespace.ts';

enterOwnNamespace();

const exceptions = {
  'client-query': 'Envoy answers 404 to a path that does not begin with a slash, before it looks at any route',
  'client-half-close-connect':
    'Envoy reads the end of an HTTP/1 client as the end of its connection, and no setting changes it',
};

engineConformance('envoy', createEnvoy, { program: envoyProgram(), exceptions });
engineSecurity('envoy', createEnvoy, { program: envoyProgram() });
