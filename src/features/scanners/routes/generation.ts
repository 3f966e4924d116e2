import type { ViewsStatus } from '../../../base/reports/scanners.ts'
import { statSync } from 'node:fs'
import { toIso } from '../../../base/time.ts'
import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import { type Views, type ViewRecord, openViews } from '../store/reads.ts'
import {
  type ViewsKind,
  generationDir,
  noteDamage,
  readCurrentViews,
  readDamage,
  viewsPath,
} from '../store/generations.ts'
import { findOpeningDamage } from '../views/check.ts'
import type { ServerLog } from '../../../server/http/problems.ts'
import { gzipMember } from '../../../store/database/gzip.ts'
import { contentTag } from '../../../server/http/response.ts'
import type { ServedSnapshot } from '../../../server/snapshot/served.ts'
import type { SnapshotOrigin } from '../../../server/http/origin.ts'
import { type OtherIds, createOtherIds } from '../../../server/snapshot/other-ids.ts'

/** The views builder, as the serving side needs it. */
export interface ViewsMaker {
  /** Reports that a client waits for the first generation. */
  wanted(): void
  /** Reports that the generation in use cannot be read: it is rebuilt. */
  damaged(kind: ViewsKind): void
  /** Returns the state of the views; nothing in it is secret. */
  report(): readonly ViewsStatus[]
}

/** The generation of views in use. */
export type ViewsInUse = ReturnType<typeof createViewsInUse>

/** Keeps the newest generation of the data folder open. `served`: what it is served beside, which says why there is none yet. */
export function createViewsInUse(
  dataDir: string,
  maker: ViewsMaker | null,
  log: Pick<ServerLog, 'warn'> | null,
  served: Pick<ServedSnapshot, 'originOf' | 'knownOrigin'> | null = null,
) {
  const open = createOpenViews(maker)
  let refused = ''
  let logged = ''
  const refresh = (): void => {
    try {
      const name = readCurrentViews(dataDir, 'osv')?.name
      if (name === undefined && readDamage(dataDir, 'osv') !== null) open.leave()
      const mark = name === undefined ? '' : markOf(dataDir, name)
      if (name === undefined || open.isOf(mark) || mark === refused) return
      refused = mark
      open.take(generationDir(dataDir, name), mark)
      refused = ''
      logged = ''
    } catch (error) {
      const why = messageOf(error)
      if (why !== logged) log?.warn({}, `the views cannot be read and are rebuilt: ${why}`)
      logged = why // looked at each second
      maker?.damaged('osv')
    }
  }
  const current = (): Views => {
    if (open.views() === null) refresh()
    const views = open.views()
    if (views !== null) return views
    if (served?.knownOrigin('osv') === null) served.originOf('osv') // throws why nothing is mirrored
    if (open.isDamaged()) throw new MirrorError('not_ready', DAMAGED)
    maker?.wanted()
    throw new MirrorError('not_ready', NOT_READY)
  }
  refresh()
  return {
    /** Throws `not_ready` before the first. Call it again for each request: it is closed when the next one is published. */
    current,
    /**
     * Reads from the generation in use, and requests a rebuild when its bytes prove damaged; the error is thrown
     * on. For reads that end when `use` returns.
     */
    read<T>(use: (views: Views) => T): T {
      const views = current()
      try {
        return use(views)
      } catch (error) {
        return open.met(error)
      }
    },
    /** Does the same for an error of other reads, and throws it on. */
    met: (error: unknown): never => open.met(error),
    /** Takes the newest generation, if another one is there. Never throws. */
    refresh,
    close: open.close,
  }
}

/** Keeps one generation open, and none that was found damaged, by whomever. */
function createOpenViews(maker: ViewsMaker | null) {
  let open: { readonly views: Views; readonly mark: string } | null = null
  let isDamaged = false
  const close = (): void => {
    open?.views.close()
    open = null
  }
  const leave = (): void => {
    close()
    isDamaged = true
    maker?.damaged('osv')
  }
  return {
    views: (): Views | null => open?.views ?? null,
    isOf: (mark: string): boolean => mark === open?.mark,
    isDamaged: (): boolean => isDamaged,
    leave,
    close,
    /** Opens a generation instead. The one that a daemon made behind the one that it has is not compared with its sums. Throws `corrupt`. */
    take(folder: string, mark: string): void {
      const isJustMade = maker !== null && open !== null && open.views.folder !== folder
      const fault = isJustMade ? null : findOpeningDamage(folder)
      if (fault !== null) {
        leave()
        throw new MirrorError('corrupt', fault)
      }
      const views = openViews(folder)
      close()
      open = { views, mark }
      isDamaged = false
    },
    met(error: unknown): never {
      if (isOfSqlite(error) && open !== null) {
        noteDamage(open.views.folder, messageOf(error))
        leave()
      } else if (isDamage(error)) maker?.damaged('osv')
      throw error
    },
  }
}

const NOT_READY = 'the views for scanners are being built: try again later'
const DAMAGED =
  'the views for scanners are damaged: a daemon builds them again by itself, and so does "patchmirror doctor --data --repair"'

/** Returns a text that differs for each generation, also for one that was rebuilt under the same name. */
function markOf(dataDir: string, name: string): string {
  const file = statSync(viewsPath(generationDir(dataDir, name)), { throwIfNoEntry: false })
  return `${name} ${file?.ino} ${file?.mtimeMs}`
}

/** Reports whether an error shows that files of a generation were changed. */
export function isDamage(error: unknown): boolean {
  if (error instanceof MirrorError) return error.code === 'corrupt' || error.code === 'storage'
  return systemCode(error) === 'ENOENT' || isOfSqlite(error)
}

/** Reports whether SQLite found the database of a generation damaged: then no answer of it is believed. */
function isOfSqlite(error: unknown): boolean {
  const code = systemCode(error) ?? ''
  return code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')
}

/** Returns a record of a view as content of an answer; its tag follows from its bytes alone. */
export function viewRecordContent({ content, crc32, deflated }: ViewRecord, { info }: Pick<Views, 'info'>) {
  const gzip = (): Buffer => gzipMember(deflated, crc32, content.length)
  return { body: content, gzip, tag: contentTag(content), changed: info.changed }
}

/** Returns header fields that mark derived bytes and name the removed prefixes. */
export function derivedHead({ prefixes }: { readonly prefixes: readonly string[] }): string[] {
  return prefixes.length === 0 ? [] : ['X-Mirror-Derived', prefixes.map(encodeURIComponent).join(', ')]
}

/** Returns the origin of a generation's answers: the served snapshot's own, as long as both are of one snapshot. */
export function createViewOrigins(served: Pick<ServedSnapshot, 'knownOrigin' | 'markStale'>) {
  let made: { readonly views: OriginViews; readonly origin: SnapshotOrigin } | null = null
  return (views: OriginViews): SnapshotOrigin => {
    const now = served.knownOrigin('osv')
    const { snapshot, asOf } = views.info
    if (now?.snapshot === snapshot) return now
    if (made?.views !== views) {
      const { scope, isPart } = now ?? {}
      const origin = {
        source: 'osv' as const,
        snapshot,
        asOf: toIso(asOf),
        version: views.folder,
        ...(scope !== undefined && { scope }),
        ...(isPart === true && { isPart }),
      }
      made = { views, origin }
    }
    return served.markStale('osv', made.origin)
  }
}

/** The parts of a generation that determine its origin. */
export type OriginViews = Pick<Views, 'info' | 'folder'>

/** A record of a view, and the id by which it is there. */
interface FoundRecord {
  readonly id: string
  readonly record: ViewRecord
}

/**
 * The one record that is meant by another form of its id (other-ids.ts); null when there is none, or more than one. `read`
 * reads a record by its id.
 */
export function findOtherViewRecord(
  views: OtherViews,
  asked: readonly string[],
  read: (id: string) => ViewRecord | null,
): FoundRecord | null {
  let forms = otherIds.get(views)
  if (forms === undefined) otherIds.set(views, (forms = createOtherIds(views.listUntidyIds)))
  const ids = [...new Set([...asked, ...forms.find(asked)])]
  const found = ids.flatMap((id) => {
    const record = read(id)
    return record === null ? [] : [{ id, record }]
  })
  return found.length === 1 ? (found[0] ?? null) : null
}

/** What of a generation other forms of ids are made from. */
type OtherViews = Pick<Views, 'listUntidyIds'>

/** Of each generation, as long as it is in use. */
const otherIds = new WeakMap<OtherViews, OtherIds>()
