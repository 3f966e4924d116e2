import type { Doubt } from '../../base/domain/doubts.ts'
import { TAGS, PATCHES } from '../../base/domain/resources.ts'
import type { ArtifactJudging } from '../../guard/artifacts.ts'
import type { DigestEvidence } from '../../guard/lost-components.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import type { CatalogReads } from '../../documents/vex/images.ts'
import { parseReplaced } from '../../store/catalog/lists.ts'
import type { FetchedArtifact } from '../../store/catalog/answer-writes.ts'
import { type SourceStandard, accountDoubts, createStandard } from '../doubts.ts'
import type { CatalogContext } from './context.ts'
import { namesOfTag } from './new-tags.ts'
import { type RemovedItems, isThereAgain } from './removed-items.ts'

/** What the artifacts of a run hide, and how it is accounted for. */
export interface ArtifactVerdict {
  readonly verdict: GuardVerdict
  /** Accounts for it, in the transaction that publishes. */
  readonly account: () => void
}

/**
 * Judges what fetched VEX, SBOMs, mentions of artifact sets and lists of patches would hide; null where the guard is off, or none
 * of them changed.
 * Loads the code only then. `isPublished`: whether the run publishes the fetched answer of a path; `gone`: what it
 * removes.
 */
export async function judgeArtifacts(
  context: CatalogContext,
  isPublished: (path: string) => boolean,
  gone: Removed = { answers: [], items: [] },
): Promise<ArtifactVerdict | null> {
  const { config, store, source } = context
  if (source !== 'catalog' || config.guard.mode === 'off') return null
  if (store.snapshots.readSnapshot(source) === null) return null
  const fetched = store.catalog.listFetchedArtifacts().filter(({ path }) => isPublished(path))
  const done = patchesDone(context)
  const removed = gone.answers.filter(({ path }) => path.endsWith('/vex'))
  const items = gone.items.filter(({ reason }) => reason === null)
  const changed = fetched.length + done.length + removed.length + items.length
  if (changed === 0 && !store.catalog.movesMentions()) return null
  const { judgeVex } = await import('../../guard/artifacts.ts')
  const { judgeSboms } = await import('../../guard/sboms.ts')
  const { createDoubtCount } = await import('../../guard/verdict.ts')
  const totals = { of: new Map<Doubt, number>(), ofTag: new Map<string, number>() }
  const { standard, restored } = withoutRestored(context, standardOf(context, totals))
  const count = createDoubtCount(standard)
  const judging = { count, totals }
  const input = {
    store,
    dataDir: config.data.dir,
    windowDays: config.guard.windowDays,
    now: context.now(),
    facts: context.facts,
    digestOf: (tag: string) => digestEvidence(context, tag),
    catalogNow: walkedCatalog(context),
  }
  const endsWith = (end: string) => fetched.filter(({ path }) => path.endsWith(end))
  const emptied = removed.map((one) => emptiedArtifact(context, one))
  const sboms = endsWith('/sbom')
  await judgeVex(input, { vex: [...endsWith('/vex'), ...emptied], sboms }, judging)
  await judgeSboms(input, sboms, judging)
  noteRemoved(items, judging)
  totals.of.set('patchesDone', store.catalog.readList(PATCHES.path)?.entries ?? 0)
  for (const name of done)
    count.note({
      kind: 'patchesDone',
      name,
      content: '',
      because: 'done now',
      packages: [],
      path: PATCHES.path,
    })
  const verdict = count.verdict()
  return { verdict, account: () => accountDoubts(context, verdict, standard, restored) }
}

function standardOf(context: CatalogContext, { of, ofTag }: ArtifactJudging['totals']): SourceStandard {
  return { ...createStandard(context, (kind) => of.get(kind) ?? 0), ofTag }
}

/** What a run removes: stored answers, and items of lists and of other kinds. */
export interface Removed {
  readonly answers: readonly GoneAnswer[]
  readonly items: readonly RemovedItems[]
}

type GoneAnswer = Pick<FetchedArtifact, 'path' | 'owner'>

/** Counts what a run removes below the limits of one run, since the window has limits too. */
function noteRemoved(items: readonly RemovedItems[], { count, totals }: ArtifactJudging): void {
  for (const { key, total, gone } of items) {
    totals.ofTag.set(key, total)
    for (const id of gone)
      count.note({ kind: 'itemsRemoved', name: `${key} ${id}`, content: '', because: 'removed', packages: [key] })
  }
}

/** Leaves out of what earlier runs removed what is there again, and returns its names. */
function withoutRestored(context: CatalogContext, standard: SourceStandard) {
  const isBack = (name: string): boolean => {
    const at = name.indexOf(' ')
    return isThereAgain(context, name.slice(0, at), name.slice(at + 1))
  }
  const restored = new Set(standard.earlier('itemsRemoved').flatMap(({ name }) => (isBack(name) ? [name] : [])))
  const earlier: SourceStandard['earlier'] = (kind) => standard.earlier(kind).filter(({ name }) => !restored.has(name))
  return { standard: { ...standard, earlier }, restored: [...restored] }
}

function emptiedArtifact({ store }: CatalogContext, { path, owner }: GoneAnswer): FetchedArtifact {
  const links = store.catalog.readAnswer(path)?.links ?? []
  return { path, owner, before: links.map(({ digest }) => digest), now: [], sbomChanged: null }
}

/** Compares the digest of a tag's image in the walked list with the one in the stored list. */
function digestEvidence({ store }: CatalogContext, tag: string): DigestEvidence {
  const list = store.catalog.readList(TAGS)
  const stored = list === null ? null : store.catalog.readEntry(list.id, tag)
  if (stored === null) return null
  const before = digestIn(stored.body)
  const staged = store.catalog.staging.readStaged(TAGS, tag)
  const now = staged === null ? before : digestIn(staged)
  if (before === null || now === null) return null
  return before === now ? 'same' : 'other'
}

/** The catalog with what the run walked of the list of tags, where it has a tag already. */
function walkedCatalog({ store: { catalog } }: CatalogContext): CatalogReads {
  return {
    ...catalog,
    readEntry(list, id) {
      const stored = catalog.readEntry(list, id)
      const body = stored === null ? null : catalog.staging.readStaged(TAGS, id)
      return stored === null || body === null ? stored : { ...stored, body }
    },
    listNaming: (text, most) =>
      catalog.listNaming(text, most).map((one) => {
        const body = one.list === TAGS ? catalog.staging.readStaged(TAGS, one.id) : null
        return body === null ? one : { ...one, body }
      }),
  }
}

function digestIn(body: Buffer): string | null {
  const item = parseReplaced(body)
  return item === null ? null : namesOfTag(item).digest
}

const STATUS_FACET = PATCHES.facets.findIndex(({ field }) => field === 'ticket_status')

/** Ids of the patches that are done now and were not. */
function patchesDone({ store }: CatalogContext): string[] {
  const { staging } = store.catalog
  return STATUS_FACET < 0 ? [] : staging.listTurned(PATCHES.path, STATUS_FACET, 'done')
}
