/** Envoy as an engine of the proxy: the real program, real connections. */
import { envoyProgram } from '../../lab/setup/envoy.ts';
import { createEnvoy } from '../../src/proxy/envoy/engine.ts';
import { engineConformance } from '../../src/proxy/testing/conformance.ts';
import { engineSecurity } from '../../src/proxy/testing/security.ts';
import { enterOwnNamespace } from './own-namespace.ts';

enterOwnNamespace();
engineConformance('envoy', createEnvoy, { program: envoyProgram() });
engineSecurity('envoy', createEnvoy, { program: envoyProgram() });
