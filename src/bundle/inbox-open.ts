import { MirrorError } from '../errors.ts'
import type { InboxFile } from './inbox-files.ts'
import type { Manifest } from './manifest.ts'
import { type Bundle, type KeyTrust, openBundle } from './open.ts'
import type { Tries } from './tries.ts'

/** What of a bundle says when it is its turn. */
export interface Head extends Pick<Manifest, 'mirror' | 'sequence' | 'kind'> {
  arrival: InboxFile
}

interface Opening {
  readonly trust: Omit<KeyTrust, 'allowUnsigned'>
  readonly tries?: Tries
}

/** Works with arrivals one at a time; of what fails, `fail` is told. */
export function createOpener(
  { trust, tries }: Opening,
  fail: (arrival: InboxFile, error: unknown) => void,
) {
  const open = (arrival: InboxFile): Promise<Bundle> =>
    openBundle(arrival.files, { ...trust, allowUnsigned: false })
  /** Null: it failed, or did so by ending the process again and again. */
  const attempt = async <T>(arrival: InboxFile, work: () => Promise<T>): Promise<T | null> => {
    const id = `${arrival.name} ${arrival.stamp}`
    try {
      if (tries?.begin(id) === false) throw new MirrorError('bundle', DEADLY)
      return await work().finally(() => tries?.end(id))
    } catch (error) {
      fail(arrival, error)
      return null
    }
  }
  /** What bundles say of themselves. They are closed again: there may be more of them than files that can be open. */
  const readHead = (arrival: InboxFile): Promise<Head | null> =>
    attempt(arrival, async () => {
      const bundle = await open(arrival)
      await bundle.close()
      const { mirror, sequence, kind } = bundle.manifest
      return { arrival, mirror, sequence, kind }
    })
  return {
    open,
    attempt,
    async readHeads(arrivals: readonly InboxFile[]): Promise<Head[]> {
      const heads: Head[] = []
      for (const arrival of arrivals) {
        const head = await readHead(arrival)
        if (head !== null) heads.push(head)
      }
      return heads.sort(compare)
    },
  }
}

const DEADLY =
  'the process ended twice while it worked with it, so it is not tried again. To try again: "touch" it, and move it back'

/** In the order in which they are to be imported: by mirror, sequence, and a full one first. */
function compare(a: Head, b: Head): number {
  if (a.mirror !== b.mirror) return a.mirror < b.mirror ? -1 : 1
  return a.sequence - b.sequence || Number(a.kind === 'delta') - Number(b.kind === 'delta')
}
