import { startTask } from '../../../../base/threads/task.ts'
import { workerFile } from '../../../../base/threads/worker-file.ts'
import type { BundleMember, Manifest } from '../../format/manifest.ts'
import type { Contents } from '../members.ts'

/** Bytes of the second half from which a thread of its own is worth its start. */
const THREAD_FROM = 64 * 2 ** 20
/** The thread creates much garbage that lives shortly: a small young generation keeps its memory small. */
const LIMITS = { maxYoungGenerationSizeMb: 4 }

/** An open bundle to verify. */
interface Verified {
  readonly manifest: Pick<Manifest, 'members'>
  readonly contents: Pick<Contents, 'verify'>
  /** Returns what the thread opens some members with. */
  readonly excerpt: (isWanted: (name: string) => boolean) => unknown
}

/**
 * Reads every member of a bundle to its end against the manifest; those of the second half of a large one in a thread of their
 * own, meanwhile. `report` gets the bytes so far. Throws `bundle` for the first half if both have a fault.
 */
export async function verifyInHalves(
  { manifest, contents, excerpt }: Verified,
  report: (done: number) => void,
  threadFrom = THREAD_FROM,
): Promise<void> {
  const later = secondHalf(manifest, threadFrom)
  if (later.size === 0) return contents.verify(report)
  const done = { here: 0, there: 0 }
  const add = (more: Partial<typeof done>): void => {
    Object.assign(done, more)
    report(done.here + done.there)
  }
  const data = excerpt((name) => later.has(name))
  const file = workerFile('verify.worker', import.meta.url)
  const task = startTask<null>({ file, data, limits: LIMITS }, ({ done: there }) => add({ there }))
  task.result.catch(() => undefined) // awaited below
  try {
    await contents.verify(
      (here) => add({ here }),
      (name) => !later.has(name),
    )
    await task.result
  } finally {
    await task.stop()
  }
}

/** Returns the names of the members in the second half of the bytes; none if these are fewer than `least`. */
function secondHalf({ members }: Pick<Manifest, 'members'>, least: number): ReadonlySet<string> {
  const total = totalBytes(members)
  let bytes = 0
  const first = members.findIndex((one) => (bytes += bytesOf(one)) > total / 2) + 1
  if (total - bytes < least) return new Set()
  return new Set(members.slice(first).map(({ name }) => name))
}

/** Returns the bytes of members in their bundle. */
export function totalBytes(members: Manifest['members']): number {
  return members.reduce((sum, one) => sum + bytesOf(one), 0)
}

function bytesOf(member: BundleMember): number {
  return member.method === 'deflate' ? member.packed : member.size
}
