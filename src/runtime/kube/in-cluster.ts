/**
 * In-cluster access: the service account that the kubelet mounts into every pod.
 * Source: Kubernetes documentation "Accessing the Kubernetes API from a Pod".
 */
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { EgressError } from '../../api/error.ts';
import { type AccessDeps, keepIfSame, type ServerAccess, type TlsMaterial } from './access.ts';
import { CredentialFile } from './credential-file.ts';

const mountedAt = '/var/run/secrets/kubernetes.io/serviceaccount';

/** True when the process runs in a pod: the two variables are set by the kubelet. */
export function isInCluster(env: NodeJS.ProcessEnv): boolean {
  return !!env.KUBERNETES_SERVICE_HOST && !!env.KUBERNETES_SERVICE_PORT;
}

/** Returns access as the pod's service account; rejects with KUBECONFIG_INVALID outside a pod. */
export async function inClusterAccess(deps: AccessDeps, folder: string = mountedAt): Promise<ServerAccess> {
  const host = deps.env.KUBERNETES_SERVICE_HOST;
  const port = deps.env.KUBERNETES_SERVICE_PORT;
  if (!host || !port) {
    throw new EgressError(
      'KUBECONFIG_INVALID',
      'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; run inside a pod or name a kubeconfig.',
    );
  }
  const token = new CredentialFile(join(folder, 'token'), 'the service account token', deps);
  const ca = new CredentialFile(join(folder, 'ca.crt'), "the cluster's certificate authority", deps);
  // Fail at start with a sentence about the mount, not at the first call.
  await Promise.all([token.text(), ca.text()]);
  let tls: TlsMaterial | undefined;
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    namespace: await namespaceIn(folder, deps),
    async credentials() {
      tls = keepIfSame(tls, { ca: await ca.text(), isInsecure: false });
      return { token: await token.text(), tls };
    },
    forget() {
      token.forget();
      ca.forget();
    },
  };
}

/** The namespace file is a convenience: a mount without it is still usable. */
async function namespaceIn(folder: string, deps: AccessDeps): Promise<string> {
  try {
    return (await deps.readFile(join(folder, 'namespace'))).trim() || 'default';
  } catch {
    return 'default';
  }
}
