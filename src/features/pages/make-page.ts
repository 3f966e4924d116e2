import { PLAIN_REQUEST } from '../../server/http/request-headers.ts'
import { withoutHeader } from '../../server/access/credentials.ts'
import { createReading } from '../../server/reading/reader.ts'
import { createFreshness } from '../lookup/freshness.ts'
import { type ViewsInUse, createViewsInUse } from '../scanners/routes/generation.ts'
import { MirrorError, httpStatus, messageOf } from '../../base/errors.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import { openInboxReader } from '../../store/database/open.ts'
import { isUnreadable } from '../../store/database/faults.ts'
import { createInboxReads } from '../../store/webhooks/inbox.ts'
import type { ShortReads } from '../../store/reads.ts'
import type { Views } from '../scanners/store/reads.ts'
import { type ThreadFailure, failureOf } from '../../base/threads/failure.ts'
import { DOCS_PATH } from '../../server/http/paths.ts'
import { type Cell, link, withTimes } from '../lookup/answers/cells.ts'
import { asSentence } from '../lookup/answers/html.ts'
import type { Block } from './blocks.ts'
import { createPageDocuments } from './documents/read.ts'
import { type Download, FORMATS, downloadOf, listIn, queryOfList } from './download.ts'
import { HTML, type LoadPage, type Page, type PageCall, type PagePath, type PageView, UI, choiceOf } from './page.ts'
import { type Place, navigationOf } from './navigation.ts'
import { withoutCommands } from './open-text.ts'
import { PAGES } from './pages.ts'
import { withDoubts } from './pages/doubts.ts'
import { problemNotices } from './pages/problems.ts'
import { referenceView } from './reference.ts'
import { type PageFrame, createRenderer } from './render.ts'
import type { PageProblem, PageReply, PageRequest, PagesData } from './request.ts'
import { loadChangesFeed } from './pages/changes/feeds.ts'
import { loadChangeList } from './pages/changes/page.ts'
import { loadEcosystemList, loadPackage, loadPackageList } from './pages/ecosystems.ts'
import { loadImages } from './pages/images/list.ts'
import { loadAvr, loadTag } from './pages/images/tag.ts'
import { loadOverview } from './pages/overview.ts'
import { loadCve } from './pages/cve.ts'
import { loadPatches } from './pages/patches.ts'
import { loadRecord } from './pages/record.ts'
import { loadRuns } from './pages/runs/list.ts'
import { loadRun } from './pages/runs/run.ts'
import { loadSearch } from './pages/search.ts'
import { loadSignIn } from './pages/sign-in.ts'
import { loadTagFindings } from './pages/tags/findings.ts'
import { loadTagsFeed } from './pages/tags/feeds.ts'
import { loadTagChanges } from './pages/tags/page.ts'
import { loadBundles } from './pages/transfer/bundles.ts'
import { loadFleet } from './pages/transfer/fleet.ts'
import { loadDeliveries } from './pages/transfer/deliveries.ts'
import { loadRelay } from './pages/transfer/relay.ts'
import { closing } from '../../base/closing.ts'

/** Creates the function that makes pages one after the other, each from one snapshot of the store. */
export function createPageMaker(data: PagesData, openReads: () => ShortReads): (request: PageRequest) => PageReply {
  const render = createRenderer()
  let load: Load | null = null
  return (request) => {
    const { view, fault } = viewOf(data, request, (page) => {
      load ??= createLoader(data, openReads())
      return contentOf(page, request, load)
    })
    const { type, text, file = null } = 'text' in view ? view : textOfPage(render, data, request, view)
    const status = 'text' in view ? 200 : (view.status ?? 200)
    return { status, type, body: new TextEncoder().encode(text), file, fault }
  }
}

type Load = (page: Page, request: PageRequest, isDownload: boolean) => PageView

/** Makes a page, or the file with the rows of its list. */
function contentOf(page: Page, request: PageRequest, load: Load): PageView | Download {
  const format = page.isList === true ? choiceOf(new URLSearchParams(request.query), 'format', FORMATS) : ''
  if (format === '') return load(page, request, false)
  return downloadOf(format, page.path, request.query, (query) => load(page, { ...request, query }, true))
}

function textOfPage(
  render: ReturnType<typeof createRenderer>,
  data: PagesData,
  request: PageRequest,
  view: PageView,
): Omit<Download, 'file'> & { readonly file?: string } {
  const { feed } = view
  if (feed === undefined) return { type: HTML, text: render.html(pageFrame(data, request, view)) }
  return { type: 'application/atom+xml', text: render.atom(feed) }
}

/** Returns what to show: the page, or why it cannot be shown. `fault`: what the log is to report. */
function viewOf(
  data: PagesData,
  request: PageRequest,
  load: (page: Page) => PageView | Download,
): { readonly view: PageView | Download; readonly fault: ThreadFailure | null } {
  if (request.document !== undefined) return { view: referenceView(request.document), fault: null }
  if (request.problem !== null) return { view: problemView(request, request.problem), fault: null }
  try {
    const page = PAGES.find(({ path }) => path === request.page)
    if (page === undefined) throw new MirrorError('not_found', 'there is no such page')
    return { view: load(page), fault: null }
  } catch (error) {
    const isOpen = error instanceof MirrorError && OPEN.has(error.code)
    if (isUnreadable(error)) return { view: unreadView(data, request), fault: failureOf(error) }
    const message = isOpen ? messageOf(error) : FAILED
    const view = problemView(request, { status: httpStatus(error), message })
    return { view, fault: isOpen ? null : failureOf(error) }
  }
}

/** Shows what is wrong where stored data cannot be read: the problems of the report, else what says more. */
function unreadView({ config }: PagesData, request: PageRequest): PageView {
  const { status, base, now, signedIn } = request
  const blocks = status === null ? [] : problemNotices({ config, ui: uiOf(base), now, signedIn }, status)
  if (blocks.length > 0) return { title: TITLES[503] ?? '', status: 503, blocks }
  return problemView(request, { status: 503, message: UNREAD })
}

/** Codes of errors whose messages are about the request. */
const OPEN: ReadonlySet<string> = new Set(['not_found', 'not_ready', 'bad_request', 'not_supported', 'stale'])
const UNREAD = 'what is stored cannot be read now: the log has the reason; "patchmirror doctor" says what helps'
const FAILED = 'the mirror failed to make this page; its log has the reason'

const TITLES: Readonly<Record<number, string>> = {
  400: 'The request cannot be understood',
  401: 'This page takes a local key',
  404: 'Not found',
  405: 'These pages only read',
  429: 'Too many wrong keys',
  503: 'Not ready',
}

function problemView({ base }: PageRequest, { status, message }: PageProblem): PageView {
  const title = TITLES[status] ?? 'This page failed'
  if (status === 401) return { title, status, blocks: [keyNotice(base, message)] }
  return {
    title,
    status,
    blocks: [{ kind: 'notice', tone: 'warn', title: `${status}`, text: withTimes(asSentence(message)) }],
  }
}

/** Says how a person brings a key: the page to sign in makes the browser ask for it, also where it has a wrong one. */
function keyNotice(base: string, message: string): Block {
  const how = 'Sign in: your browser asks for the key. It is the user name, and the password stays empty.'
  return {
    kind: 'notice',
    tone: 'warn',
    title: '401',
    text: `${asSentence(withoutHeader(message))} ${how}`,
    links: [{ text: 'Sign in', href: uiOf(base)('sign-in') }],
  }
}

function createLoader({ config }: PagesData, shortReads: ShortReads) {
  const { reads } = shortReads
  const answer = createReading({ config }, shortReads)
  const documents = createPageDocuments(reads)
  const remember = createMemory()
  const generation = createViewsInUse(config.data.dir, null, null)
  const views = <T>(use: (views: Views) => T): T | null => {
    generation.refresh()
    const open = isBuilt(config) ? openOrNull(generation) : null
    return open === null ? null : use(open)
  }
  return (page: Page, request: PageRequest, isDownload: boolean): PageView => {
    const { now, signedIn, status, base, origin } = request
    const freshness = createFreshness(config, reads, now)
    const readApi: PageCall['readApi'] = (path, { params = {}, query }) => {
      const asked = {
        path,
        params,
        query: query?.toString() ?? '',
        baseUrl: base,
        now,
        served: request.served,
        linkSecret: null, // pages show documents under their own paths
      }
      freshness.mark('catalog')
      return answer({ ...asked, method: 'GET', requestHeaders: PLAIN_REQUEST })
    }
    const call: PageCall = {
      query: new URLSearchParams(request.query),
      now,
      signedIn,
      isDownload,
      status,
      config,
      reads,
      remember,
      inbox: (use) => withInboxReads(config.data.dir, use),
      documents,
      views: (use) =>
        views((open) => {
          freshness.useIndex(open.info.snapshot)
          return use(open)
        }),
      readApi,
      ui: uiOf(base),
      root: (path) => base + path,
      absolute: (path) => origin + path,
      refuseOld: (source) => void freshness.use(source),
      mark: freshness.mark,
    }
    return shortReads.during(() => {
      sourcesOf(page, signedIn).forEach(call.refuseOld)
      return withDoubts(call, page, freshness, LOADERS[page.path])
    }, request.served)
  }
}

/** Creates a memory of the two last results that took long. */
function createMemory(): PageCall['remember'] {
  const known = new Map<string, unknown>()
  return <T>(key: string, make: () => T): T => {
    if (known.has(key)) return known.get(key) as T // what this key was set to
    const made = make()
    const [oldest] = known.keys()
    if (known.size > 1 && oldest !== undefined) known.delete(oldest)
    known.set(key, made)
    return made
  }
}

/** Opens the database of deliveries for one page: the inbox thread owns it. */
function withInboxReads<T>(dataDir: string, use: (inbox: ReturnType<typeof createInboxReads>) => T): T | null {
  const db = openInboxReader(dataDir)
  return db === null ? null : closing(db, () => use(createInboxReads(db)))
}

/**
 * Returns the sources whose data a page shows, beside those that `readApi` asks for or `refuseOld` names: a page of the state shows how old
 * everything is, and a run is no data of a source.
 */
function sourcesOf({ path, access, usesStatus, isLog }: Page, signedIn: boolean): readonly SourceName[] {
  if (access !== 'open' || usesStatus || isLog === true) return []
  return path === SEARCH && signedIn ? ['osv', 'catalog'] : ['osv']
}

const SEARCH = 'search'

/** Reports whether the settings have views built: older ones may still be stored where they do not. */
function isBuilt({ views }: PagesData['config']): boolean {
  return views.bucket || views.query
}

function openOrNull(generation: ViewsInUse): Views | null {
  try {
    return generation.current()
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'not_ready') return null
    throw error
  }
}

/** Returns the function that makes paths of pages with parameters, below the mirror's own prefix. */
function uiOf(base: string): PageCall['ui'] {
  return (path, parameters = {}) => {
    const given = Object.entries(parameters).flatMap(([name, value]): [string, string][] =>
      value === null || value === undefined || value === '' ? [] : [[name, String(value)]],
    )
    const query = new URLSearchParams(given).toString()
    return `${base}${UI}${path}${query === '' ? '' : `?${query}`}`
  }
}

/** Returns what the frame of a page shows: navigation, search, and the links of its footer. */
function pageFrame(
  { config, version, style, script, icon }: PagesData,
  request: Pick<PageRequest, 'base' | 'page' | 'query' | 'signedIn' | 'document'>,
  view: PageView,
): PageFrame {
  const { base, page, query, signedIn, document } = request
  const ui = uiOf(base)
  const searched = page === 'search' ? (new URLSearchParams(query).get('q') ?? '') : ''
  const place = document === undefined ? (PAGES.find(({ path }) => path === page) ?? null) : 'contract'
  return {
    title: view.title,
    blocks: signedIn ? view.blocks : withoutCommands(view.blocks),
    version,
    navigation: navigationOf(place, config, ui, base + DOCS_PATH),
    style: ui(style),
    script: place === 'contract' ? null : ui(script), // that page is revalidated by the document alone
    refresh: isLive(place) ? REFRESH_SECONDS : null,
    icon: ui(icon),
    home: ui(''),
    search: ui('search'),
    query: searched,
    signIn: signedIn ? null : ui('sign-in'),
    alternates: view.alternates ?? [],
    downloads: downloadsOf(place, view, request),
  }
}

const REFRESH_SECONDS = 30

function isLive(place: Place): boolean {
  return place !== null && place !== 'contract' && place.isLive === true
}

/** Links to the rows of a list as files; none where the page shows no row. */
function downloadsOf(place: Place, view: PageView, { base, query }: Pick<PageRequest, 'base' | 'query'>): Cell[] {
  const isList = place !== null && place !== 'contract' && place.isList === true
  if (!isList || (view.status ?? 200) !== 200 || (listIn(view)?.rows ?? []).length === 0) return []
  const asked = Object.fromEntries(queryOfList(query))
  return FORMATS.map((format) => link(format.toUpperCase(), uiOf(base)(place.path, { ...asked, format })))
}

/** What loads each page. For the thread that makes pages: the serving thread loads none of their modules. */
const LOADERS: Readonly<Record<PagePath, LoadPage>> = {
  '': loadOverview,
  changes: loadChangeList,
  'changes.atom': loadChangesFeed,
  runs: loadRuns,
  run: loadRun,
  search: loadSearch,
  record: loadRecord,
  ecosystems: loadEcosystemList,
  packages: loadPackageList,
  package: loadPackage,
  cve: loadCve,
  patches: loadPatches,
  images: loadImages,
  tag: loadTag,
  avr: loadAvr,
  'tag-findings': loadTagFindings,
  'tag-changes': loadTagChanges,
  'tag-changes.atom': loadTagsFeed,
  bundles: loadBundles,
  relay: loadRelay,
  fleet: loadFleet,
  webhooks: loadDeliveries,
  'sign-in': loadSignIn,
}
