/** The operator in the chart as text: its command line, its webhook, and that it can be left out. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { z } from 'zod';
import { run } from '../../lab/host/command.ts';
import { chartFolder, release } from '../../lab/install.ts';
import { programs } from '../../lab/setup/go-build.ts';
import { webhookSet as operatorWebhook, webhookService } from '../../src/operator/admission.ts';
import { type Helm, objectOf, openHelm } from './helm.ts';

const everything = ['networkPolicy.enabled=true', 'imagePullSecrets[0].name=registry'];

let helm: Helm;
before(async () => {
  // Rendering asks no cluster.
  helm = openHelm(await programs(), '/nowhere');
});
after(() => {
  helm?.close();
});

/** A Deployment, as far as its command line goes. */
const Workload = z.looseObject({
  spec: z.looseObject({
    replicas: z.int(),
    template: z.looseObject({
      spec: z.looseObject({ containers: z.array(z.looseObject({ args: z.array(z.string()) })) }),
    }),
  }),
});

describe('the operator', () => {
  test('tells the API server what src/operator/admission.ts says, but for the certificate authority', async () => {
    const object = objectOf(await helm.render(), 'ValidatingWebhookConfiguration', operatorWebhook.name);
    const service = { name: webhookService, namespace: release.namespace, path: operatorWebhook.path, port: 443 };
    const wanted = operatorWebhook.whole({}).webhooks?.map((webhook) => ({ ...webhook, clientConfig: { service } }));
    assert.deepEqual(z.looseObject({ webhooks: z.unknown() }).parse(object).webhooks, wanted);
  });

  test('gets a command line that it takes', async () => {
    const set = [
      ...everything,
      'operator.proxyNamespaces={bcs-system,tenants}',
      'operator.defaultProxy.minReplicas=3',
      'operator.nameservers={198.51.100.53}',
      'operator.images.nginx.repository=registry.example.com/nginx',
    ];
    const { spec } = Workload.parse(objectOf(await helm.render(...set), 'Deployment', 'sallyport-operator'));
    assert.equal(spec.replicas, 2);
    const [{ args } = { args: [] }] = spec.template.spec.containers;
    const { code, stdout } = await run(
      [join(chartFolder, '..', '..', 'bin', 'sallyport'), ...args, '--kubeconfig=/nowhere'],
      {},
    );
    assert.equal(code, 2);
    assert.match(stdout, /KUBECONFIG_INVALID|\/nowhere/, 'everything before the kubeconfig is understood');
    assert.ok(args.includes('--proxy-namespace=tenants'));
    assert.ok(args.includes('--default-proxy={"minReplicas":3}'));
    assert.ok(args.includes('--nginx-image=registry.example.com/nginx:0.1.0'));
    assert.ok(args.includes('--image-pull-secret=registry'));
  });

  test('is left out on request, with all that belongs to it', async () => {
    const objects = await helm.render('operator.enabled=false');
    assert.deepEqual(
      objects.filter(
        ({ kind, metadata }) => kind !== 'CustomResourceDefinition' && /operator|proxy|bcs-system/.test(metadata.name),
      ),
      [],
    );
  });
});
