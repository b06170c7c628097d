import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOurs } from './kind.ts';

const marked = (labels: Record<string, string>) =>
  isOurs({
    metadata: {
      name: 'a',
      namespace: 'shop',
      labels: { 'app.kubernetes.io/managed-by': 'sallyport-operator', ...labels },
    },
  });

test('the endpoints that Kubernetes makes for a Service of ours are not ours, though they carry its labels', () => {
  assert.ok(marked({}));
  assert.ok(marked({ 'endpointslice.kubernetes.io/managed-by': 'sallyport-operator' }));
  assert.ok(!marked({ 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' }));
});
