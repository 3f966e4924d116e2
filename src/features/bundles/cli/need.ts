import { createWriteStream, existsSync, renameSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { withStoredReads } from '../../../cli/store-reads.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { PRIVATE_FILE } from '../../../base/files.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import type { Db } from '../../../store/database/open.ts'
import { type Reads } from '../../../store/reads.ts'
import { createContentDigester } from '../../../store/replication/content.ts'
import { type CarriedReader, createCarriedReader } from '../../../store/replication/reader.ts'
import { combineDigests } from '../../../store/replication/rows.ts'
import { writeSummary } from '../export/summary.ts'
import { makeTemporary } from '../../../store/temporary.ts'
import { type GlobalOptions, firstStep, print, printJson, settings } from '../../../cli/context.ts'
import { describeHeld } from '../export/record-state.ts'
import { namedSources, refuseUnwritable } from './files.ts'

/** Options of `patchmirror bundle need` and `patchmirror status --digest`. */
interface NeedOptions extends GlobalOptions {
  /** Write only the state digest: enough while the exporting mirror still knows that state. */
  brief?: boolean
  /** Names, separated by commas. */
  sources?: string
  /** Replace a file of this name. */
  force?: boolean
  json?: boolean
  /** `content`: of the content alone. */
  digest?: true | string
}

/** `patchmirror bundle need FILE`: what this mirror has, for `patchmirror bundle export --for FILE` on the source mirror. */
export async function needCommand(file: string, options: NeedOptions): Promise<number> {
  refuseUnwritable(file)
  if (options.force !== true && existsSync(file))
    throw new MirrorError('usage', `${file} exists already; --force replaces it`)
  await withStored(options, async (carried, reads, sources) => {
    const digests = Object.fromEntries(sources.map((source) => [source, carried.digestOf(source)]))
    const header = describeHeld(reads, digests, options.brief === true)
    const temporary = makeTemporary(dirname(resolve(file)))
    try {
      // Never through an existing link: it would write to the link's target.
      const draft = join(temporary.folder, 'need')
      const stream = createWriteStream(draft, { flags: 'wx', mode: PRIVATE_FILE })
      await pipeline(Readable.from(writeSummary(carried, header)), stream)
      renameSync(draft, file)
    } catch (error) {
      throw new MirrorError('storage', `${file} cannot be written: ${messageOf(error)}`, {
        cause: error,
      })
    } finally {
      temporary.remove()
    }
    const only = options.sources === undefined ? '' : ` --sources ${sources.join(',')}`
    const next = `patchmirror bundle export OUT --for ${file}${only}`
    if (options.json === true) {
      printJson({ file, digest: header.digest, sources, next })
      return
    }
    print(`${file} describes the state stored here: ${sources.join(', ')}`)
    print(`carry it up and run: ${next}`)
  })
  return 0
}

/**
 * `patchmirror status --digest`: one hash over all that is served, equal on both sides of a gap, and one for each source. With
 * `--digest content` over the content alone, computed from what is stored: equal on mirrors that synced by themselves.
 */
export async function digestCommand(options: NeedOptions): Promise<number> {
  const { digest: over = true } = options
  if (over !== true && over !== 'content')
    throw new MirrorError('usage', `--digest takes "content" or nothing: ${over}`)
  await withStored(options, (carried, _reads, sources, db) => {
    const digestOf = over === 'content' ? createContentDigester(db) : carried.digestOf
    const digests = Object.fromEntries(sources.map((source) => [source, digestOf(source)]))
    const digest = combineDigests(digests)
    if (options.json === true) {
      print(JSON.stringify({ digest, sources: digests }, null, 2))
      return
    }
    print(digest)
    for (const [source, one] of Object.entries(digests)) print(`  ${source}  ${one}`)
  })
  return 0
}

/** Calls `work` with one snapshot of the data folder, and the requested sources that are stored. */
async function withStored(
  options: NeedOptions,
  work: (carried: CarriedReader, reads: Reads, sources: SourceName[], db: Db) => void | Promise<void>,
): Promise<void> {
  const { config } = settings(options, false, [])
  const isFilledByImport = config.upstream.apiRoot === null && config.fleet.url === null
  const first = isFilledByImport
    ? 'import a full bundle first ("patchmirror bundle export FILE" on the source mirror)'
    : firstStep(config)
  const nothing = `nothing is stored in ${config.data.dir}: ${first}`
  await withStoredReads(config.data.dir, nothing, async (reads, db) => {
    db.exec('BEGIN')
    const carried = createCarriedReader(db)
    const stored = carried.listStoredSources()
    const sources = wantedOf(options.sources, stored)
    if (sources.length === 0) throw new MirrorError('not_ready', nothing)
    await work(carried, reads, sources, db)
  })
}

function wantedOf(names: string | undefined, stored: readonly SourceName[]): SourceName[] {
  if (names === undefined) return [...stored]
  const asked = namedSources(names)
  return stored.filter((source) => asked.includes(source))
}
