/** Envoy as an engine of the proxy: the real program, real connections. */
import { envoyProgram } from '../../lab/setup/envoy.ts';
import { createEnvoy } from '../../src/proxy/envoy/engine.ts';
import { engineConformance } from '../../src/proxy/testing/conformance.ts';
import { engineSecurity } from '../../src/proxy/testing/security.ts';
import { enterOwnNamespace } from './own-namespace.ts';

enterOwnNamespace();

const exceptions = {
  'client-query': 'Envoy answers 404 to a URL without a path',
  'client-half-close-connect': 'Envoy ends a tunnel when its client ends its side',
};

engineConformance('envoy', createEnvoy, { program: envoyProgram(), exceptions });
engineSecurity('envoy', createEnvoy, { program: envoyProgram() });
