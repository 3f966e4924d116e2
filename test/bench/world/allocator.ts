import { spawnSync } from 'node:child_process'

/** The settings of the image: of the allocator, and of Node, whose threads are smaller so. */
export const JEMALLOC = {
  NODE_OPTIONS: '--no-node-snapshot',
  LD_PRELOAD: 'libjemalloc.so.2',
  MALLOC_CONF: 'background_thread:true,narenas:2,dirty_decay_ms:100,muzzy_decay_ms:0,lg_tcache_max:12',
}
/** The settings of the systemd unit, which needs no library. */
export const GLIBC = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_TRIM_THRESHOLD_: '131072',
  MALLOC_MMAP_THRESHOLD_: '2097152',
}

/** The memory allocator of measured processes: its name, and the environment that chooses it. */
export interface Allocator {
  readonly name: 'jemalloc' | 'glibc'
  readonly env: Readonly<Record<string, string>>
}

/** The allocator of the image where this machine has its library, otherwise that of the systemd unit. */
export const ALLOCATOR: Allocator = hasJemalloc() ? { name: 'jemalloc', env: JEMALLOC } : { name: 'glibc', env: GLIBC }

/** The loader writes an error and continues without a library that it does not find. */
function hasJemalloc(): boolean {
  const { status, stderr } = spawnSync('true', { env: { ...process.env, ...JEMALLOC } })
  return status === 0 && stderr.length === 0
}
