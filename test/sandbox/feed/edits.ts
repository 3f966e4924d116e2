import type { Feed, FeedParts } from './types.ts'
import { modifiedOf, readGiven } from './from-archive.ts'
import { type Edit, type Stamp, mutate, createSupply } from './mutate.ts'
import { createRandom } from './random.ts'
import { type Stored, decodedContent, store } from './representation.ts'

type Commands = Pick<
  Feed,
  | 'add'
  | 'change'
  | 'changeSilently'
  | 'moveBackwards'
  | 'withdraw'
  | 'lowerFixes'
  | 'empty'
  | 'remove'
  | 'put'
  | 'delete'
  | 'load'
>

/** The commands that touch records. */
export function createEdits(parts: FeedParts): {
  commands: Commands
  generate: () => Promise<void>
} {
  const { options, records, clock, publisher } = parts
  const random = createRandom(options.seed)
  const { generate, next } = createSupply(parts)
  const publish = (ids: string[]): string[] => (ids.length === 0 ? ids : publisher.publish(ids))
  const pick = (n: number): string[] => sample(publisher.ids(), n, (below) => random.int(below))
  const edit = (n: number, stamp: Stamp, kind: Edit = 'content'): string[] => {
    const touched: string[] = []
    const at = clock.advance()
    for (const id of pick(records.size)) {
      if (touched.length >= n) break
      const old = records.get(id) as Stored // picked from the map's keys
      if (stamp === 'backward' && !(Date.parse(old.modified) > 86_400_000 * 60)) continue
      const before = { bytes: decodedContent(old), modified: old.modified }
      const changed = mutate(random, before, { stamp, now: options.now(), edit: kind })
      if (changed === null) continue
      records.set(id, store(id, changed.modified, changed.bytes, at))
      touched.push(id)
    }
    return publish(touched)
  }
  const remove = (ids: string[]): string[] => {
    clock.advance()
    return publish(ids.filter((id) => records.delete(id)))
  }
  const commands: Commands = {
    add(n) {
      const at = clock.advance()
      const added = Array.from({ length: n }, () => next(at))
      return publish(added)
    },
    change: (n) => edit(n, 'forward'),
    changeSilently: (n) => edit(n, 'same'),
    moveBackwards: (n) => edit(n, 'backward'),
    withdraw: (n) => edit(n, 'forward', 'withdraw'),
    lowerFixes: (n) => edit(n, 'forward', 'lower'),
    empty: (n) => edit(n, 'forward', 'empty'),
    remove: (n) => remove(pick(n)),
    put(id, content, modified) {
      const bytes = Buffer.from(content)
      records.set(id, store(id, modified ?? modifiedOf(bytes), bytes, clock.advance()))
      return publish([id])
    },
    delete: (id) => remove([id]),
    async load(zipPath, indexPath) {
      const given = await readGiven(zipPath, indexPath, clock.current())
      const at = clock.advance()
      const before = new Map(records)
      records.clear()
      for (const record of given.records) records.set(record.id, dated(record, before, at))
      publisher.publish([], given)
      return given.records.map((record) => record.id)
    },
  }
  return { commands, generate }
}

/** A loaded record keeps its Last-Modified when its content is what it was. */
function dated(record: Stored, before: Map<string, Stored>, at: number): Stored {
  const old = before.get(record.id)
  const same = old?.crc32 === record.crc32 && old.size === record.size
  return { ...record, lastModified: same ? old.lastModified : at }
}

/** n distinct items in random order; all of them when n is larger. */
function sample(items: readonly string[], n: number, int: (below: number) => number): string[] {
  const pool = [...items]
  const taken = Math.min(n, pool.length)
  for (let i = 0; i < taken; i++) {
    const j = i + int(pool.length - i)
    const chosen = pool[j] as string // i ≤ j < length
    pool[j] = pool[i] as string
    pool[i] = chosen
  }
  return pool.slice(0, taken)
}
