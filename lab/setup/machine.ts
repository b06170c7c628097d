import { run } from '../host/command.ts';
import { BadInput } from '../host/failure.ts';

/** Namespaces, mounts and packages need root; without it nothing is tried. */
export function requireRoot(): void {
  if (process.getuid?.() !== 0) throw new BadInput('the lab needs root (network namespaces, mounts); run it with sudo');
}

/** Kernel feature -> a command that works only where the kernel has it; each runs in a namespace of its own. */
const features: Readonly<Record<string, string>> = {
  'network namespaces': 'true',
  'veth devices': 'ip link add one0 type veth peer name two0',
  bridges: 'ip link add one0 type bridge',
  'VXLAN with group policy': 'ip link add one0 type vxlan id 7 dstport 4790 local 127.0.0.1 gbp',
  'nftables NAT':
    'nft "add table inet t; add chain inet t c { type nat hook postrouting priority srcnat; }; add rule inet t c masquerade"',
  'nftables for bridges':
    'nft "add table bridge t; add chain bridge t c { type filter hook forward priority filter; }; add rule bridge t c udp dport 1 drop"',
  'overlay file systems':
    'mount -t tmpfs tmpfs /mnt && mkdir /mnt/u /mnt/w /mnt/m && mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/m',
};

/** Tries each kernel feature the lab stands on; a missing one is named in one sentence. Leaves no trace. */
export async function requireKernel(): Promise<void> {
  const tries = Object.entries(features).map(async ([feature, command]) => {
    const tried = await run(['unshare', '--net', '--mount', '--propagation', 'private', 'sh', '-c', command]);
    if (tried.code === 0) return undefined;
    const { stdout: release } = await run(['uname', '-r']);
    const said = (tried.stderr.trim().split('\n').at(-1) ?? '').trim();
    return `the kernel (${release.trim()}) has no ${feature}, which the lab needs; use Linux 6.1 or newer with it enabled (${said})`;
  });
  const refusals = (await Promise.all(tries)).filter((refusal) => refusal !== undefined);
  if (refusals[0] !== undefined) throw new BadInput(refusals[0]);
}
