import type { Doubt } from '../../domain/doubts.ts'
import { canonicalPath } from '../../domain/path-templates.ts'
import { RESOURCES } from '../../domain/resources.ts'
import type { ArtifactJudging } from '../../guard/artifacts.ts'
import type { DigestEvidence } from '../../guard/lost-components.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import type { Fields } from '../../json/objects.ts'
import type { FetchedArtifact } from '../../store/catalog/answer-writes.ts'
import { type SourceStandard, accountDoubts, createStandard } from '../doubts.ts'
import { resourceNamed } from './answers/plan.ts'
import type { CatalogContext } from './context.ts'
import { namesOfTag } from './new-tags.ts'

/** What the artifacts of a run hide, and how it is accounted for. */
export interface ArtifactVerdict {
  readonly verdict: GuardVerdict
  /** Accounts for it, in the transaction that publishes. */
  readonly account: () => void
}

/**
 * Judges what fetched VEX, SBOMs, mentions of artifact sets and lists of patches would hide; null where the guard is off, or none
 * of them changed.
 * Loads the code only then. `isPublished`: whether the run publishes the fetched answer of a path; `gone`: stored answers that
 * it removes.
 */
export async function judgeArtifacts(
  context: CatalogContext,
  isPublished: (path: string) => boolean,
  gone: readonly GoneAnswer[] = [],
): Promise<ArtifactVerdict | null> {
  const { config, store, source } = context
  if (source !== 'catalog' || config.guard.mode === 'off') return null
  if (store.snapshots.readSnapshot(source) === null) return null
  const fetched = store.catalog.listFetchedArtifacts().filter(({ path }) => isPublished(path))
  const done = patchesDone(context)
  const removed = gone.filter(({ path }) => path.endsWith('/vex'))
  const changed = fetched.length + done.length + removed.length
  if (changed === 0 && !store.catalog.movesMentions()) return null
  const { judgeVex } = await import('../../guard/artifacts.ts')
  const { judgeSboms } = await import('../../guard/sboms.ts')
  const { createDoubtCount } = await import('../../guard/verdict.ts')
  const totals = { of: new Map<Doubt, number>(), ofTag: new Map<string, number>() }
  const standard = standardOf(context, totals)
  const count = createDoubtCount(standard)
  const judging = { count, totals }
  const input = {
    store,
    dataDir: config.data.dir,
    windowDays: config.guard.windowDays,
    now: context.now(),
    facts: context.facts,
    digestOf: (tag: string) => digestEvidence(context, tag),
  }
  const endsWith = (end: string) => fetched.filter(({ path }) => path.endsWith(end))
  const emptied = removed.map((one) => emptiedArtifact(context, one))
  await judgeVex(input, [...endsWith('/vex'), ...emptied], judging)
  await judgeSboms(input, endsWith('/sbom'), judging)
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
  return { verdict, account: () => accountDoubts(context, verdict, standard) }
}

function standardOf(context: CatalogContext, { of, ofTag }: ArtifactJudging['totals']): SourceStandard {
  const { guardItems, guardFraction } = context.config.catalog
  const removal = { count: guardItems, share: guardFraction }
  return { ...createStandard(context, (kind) => of.get(kind) ?? 0, removal), ofTag }
}

/** A stored answer that a run removes. */
type GoneAnswer = Pick<FetchedArtifact, 'path' | 'owner'>

function emptiedArtifact({ store }: CatalogContext, { path, owner }: GoneAnswer): FetchedArtifact {
  const links = store.catalog.readAnswer(path)?.links ?? []
  return { path, owner, before: links.map(({ digest }) => digest), now: [], sbomChanged: null }
}

const TAGS = canonicalPath(resourceNamed('tags').list?.path ?? '') ?? ''

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

function digestIn(body: Buffer): string | null {
  return namesOfTag(JSON.parse(body.toString()) as Fields).digest // parsed once before it was staged
}

const PATCHES = RESOURCES.find(({ name }) => name === 'patches')?.list ?? { path: '', facets: [] }
const STATUS_FACET = PATCHES.facets.findIndex(({ field }) => field === 'ticket_status')

/** Ids of the patches that are done now and were not. */
function patchesDone({ store }: CatalogContext): string[] {
  const { staging } = store.catalog
  return STATUS_FACET < 0 ? [] : staging.listTurned(PATCHES.path, STATUS_FACET, 'done')
}
