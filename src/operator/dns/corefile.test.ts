import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { placeHosts } from './corefile.ts';

const usual = `# of the administrator
(snippet) {
    errors
}
example.org:53 {
    hosts {
        192.0.2.9 in.example.org
    }
}
.:53 {
    errors
    health { # a comment with a brace }
       lameduck 5s
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
    }
    forward . /etc/resolv.conf
    reload
}
`;

const placed = (corefile: string, entries: Record<string, string[]>): string => {
  const outcome = placeHosts(corefile, new Map(Object.entries(entries)));
  assert.ok(outcome.ok, JSON.stringify(outcome));
  return outcome.text;
};
const refusal = (corefile: string): string => {
  const outcome = placeHosts(corefile, new Map([['a.example.com', ['10.96.0.1']]]));
  assert.ok(!outcome.ok);
  return outcome.why;
};

test('the block is in the server block of the root zone, and nothing else changes', () => {
  const text = placed(usual, { 'db.example.com': ['10.96.0.7', 'fd00::7'], 'a.example.com': ['10.96.0.8'] });
  const block = `.:53 {
    # sallyport-operator begins here; what stands until its end is written anew.
    hosts {
      10.96.0.8 a.example.com
      10.96.0.7 db.example.com
      fd00::7 db.example.com
      ttl 15
      fallthrough
    }
    # sallyport-operator ends here.
    errors`;
  assert.ok(text.includes(block), text);
  assert.equal(text.replace(block, '.:53 {\n    errors'), usual);
});

test('what cannot be is refused, in words', () => {
  assert.match(refusal('. {\n hosts /etc/hosts\n}\n'), /has a hosts block already/);
  assert.match(refusal('example.org {\n errors\n}\n'), /no server block for the root zone/);
  const torn = placed(usual, { 'a.example.com': ['10.96.0.1'] }).replace('# sallyport-operator ends here.', '');
  assert.match(refusal(torn), /comments .* is missing/);
});

test('a root zone may have a scheme and companions', () => {
  for (const zone of ['.', '.:53', 'dns://.:1053', 'example.org .:53', 'example.org, .']) {
    assert.match(placed(`${zone} {\n errors\n}\n`, { 'a.example.com': ['10.96.0.1'] }), /hosts \{/, zone);
  }
});

test('law: placing replaces what was placed, and placing nothing restores the text', () => {
  const entries = fc.dictionary(
    fc.constantFrom('a.example.com', 'b.example.com', 'c.example.com'),
    fc.array(fc.ipV4(), { minLength: 1, maxLength: 2 }),
  );
  fc.assert(
    fc.property(entries, entries, (one, two) => {
      assert.equal(placed(placed(usual, one), two), placed(usual, two));
      assert.equal(placed(placed(usual, one), {}), usual);
    }),
  );
});
