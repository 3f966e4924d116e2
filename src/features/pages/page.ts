import type { ReadReply } from '../../server/reading/request.ts'
import type { Status } from '../../base/reports/status.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Reads } from '../../store/reads.ts'
import type { createInboxReads } from '../../store/webhooks/inbox.ts'
import type { Views } from '../scanners/store/reads.ts'
import type { Block } from './blocks.ts'
import type { Alternate, WebFeed } from './feed.ts'
import type { PageDocuments } from './documents/read.ts'

/** The path below which all pages are, apart from `/`. */
export const UI = '/-/ui/'

/** Media type of pages. */
export const HTML = 'text/html'

/** Where a page is, below `UI`; '' is the overview. */
export type PagePath =
  | ('' | 'search' | 'cve' | 'record' | 'ecosystems' | 'packages' | 'package')
  | ('changes' | 'changes.atom' | 'runs' | 'run')
  | ('patches' | 'images' | 'tag' | 'avr')
  | ('tag-findings' | 'tag-changes' | 'tag-changes.atom')
  | ('bundles' | 'relay' | 'webhooks' | 'fleet' | 'sign-in')

/** The entries of the navigation that pages belong to, in order; the one behind them is the contract. */
export const ENTRIES = ['Status', 'Vulnerabilities', 'Images'] as const

/** A page as it is declared: where it is, and who may read it. What it shows is loaded on the thread that makes pages. */
export interface Page {
  readonly path: PagePath
  /** The entry of the navigation that it belongs to. */
  readonly entry: (typeof ENTRIES)[number]
  /** The tab of the entry that it belongs to, which leads to the first page that has it; null: none. */
  readonly tab: string | null
  /** Whether the settings leave out what it shows: its tab is hidden then, and it says so itself. */
  readonly isOff?: (config: Config) => boolean
  /** `key`: only with a local key. `open`: shows more to clients with one, by `PageCall.signedIn`. */
  readonly access: 'open' | 'key'
  /** Whether it shows the report on the mirror. */
  readonly usesStatus: boolean
  /** Media type of what it is; HTML when not given. */
  readonly type?: 'application/atom+xml'
  /** Whether a query asks for what takes a key, of a page that is `open` otherwise. */
  readonly isPrivate?: (query: URLSearchParams) => boolean
  /** Whether it shows the log of changes, which is no data of a source and never too old. */
  readonly isLog?: true
  /** Whether what it shows changes while it is looked at: the script shows it again every 30 s. */
  readonly isLive?: true
  /** Whether its last table is a list that can be downloaded. */
  readonly isList?: true
  /** The parameters of its query, each with what it is. */
  readonly parameters: Readonly<Record<string, string>>
}

/** Reads what a page shows, from one snapshot of the store. Throws `bad_request`, `not_found`, `not_ready`, `stale`. */
export type LoadPage = (call: PageCall) => PageView

/** What a page shows. Its texts are escaped when they are rendered. */
export interface PageView {
  readonly title: string
  readonly blocks: readonly Block[]
  /** 200 when not given. */
  readonly status?: number
  /** The same in other formats. */
  readonly alternates?: readonly Alternate[]
  /** Shown instead of blocks by pages that are feeds. */
  readonly feed?: WebFeed
}

/** A request for a page, on the thread that makes pages. */
export interface PageCall {
  readonly query: URLSearchParams
  /** Unix milliseconds. */
  readonly now: number
  /** Whether the client may read what takes a key. */
  readonly signedIn: boolean
  /** Whether the rows of its list are downloaded, and not shown page by page. */
  readonly isDownload: boolean
  /** Without private parts unless `signedIn`; null unless the page declares that it shows it. */
  readonly status: Status | null
  readonly config: Config
  readonly reads: Reads
  readonly documents: PageDocuments
  /** Returns what was made under a key before, as long as it is among the last ones. */
  readonly remember: <T>(key: string, make: () => T) => T
  /** Reads deliveries of webhooks; null while there is no database of them. */
  readonly inbox: <T>(use: (inbox: InboxReads) => T) => T | null
  /** Reads from the current generation of views; null while there is none. */
  readonly views: <T>(use: (views: Views) => T) => T | null
  /** Returns the path of a page with parameters; those that are null or '' are left out. */
  readonly ui: (path: string, parameters?: Parameters) => string
  /** Returns a path of the mirror as this client reaches it. */
  readonly root: (path: string) => string
  /** Returns the URL of a path as this client reaches it, for what is read elsewhere. */
  readonly absolute: (path: string) => string
  /** Answers a private list or item as the API does; `path` is the route as declared. */
  readonly readApi: (path: string, asked: ApiRequest) => ReadReply
  /** Throws `stale` for a source that is too old to be served; for what is read in another way than by `readApi`. */
  readonly refuseOld: (source: SourceName) => void
  /** Notes a source that is read and is never too old for it: the page says what the source lacks, as of those above. */
  readonly mark: (source: SourceName) => void
}

/** Reads of received deliveries. */
type InboxReads = ReturnType<typeof createInboxReads>

type Parameters = Readonly<Record<string, string | number | null | undefined>>

interface ApiRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: URLSearchParams
}

/** Longest value of a parameter, characters. */
const MAX_PARAMETER = 1000

/** Returns a parameter of the query, trimmed; '' when it is not given. Throws `bad_request` when it is too long. */
export function parameter(query: URLSearchParams, name: string): string {
  const value = (query.get(name) ?? '').trim()
  if (value.length <= MAX_PARAMETER) return value
  throw new MirrorError('bad_request', `${name} is longer than ${MAX_PARAMETER} characters`)
}

/** Returns a parameter that is one of `values`; '' when it is not given. Throws `bad_request` for another value. */
export function choiceOf<Value extends string>(
  query: URLSearchParams,
  name: string,
  values: readonly Value[],
): Value | '' {
  const given = parameter(query, name)
  const value = values.find((one) => one === given)
  if (value !== undefined || given === '') return value ?? ''
  throw new MirrorError('bad_request', `${name} is none of: ${values.join(', ')}`)
}

/** Returns a whole number from a parameter; null when it is not given. Throws `bad_request` for anything else. */
export function numberOf(query: URLSearchParams, name: string): number | null {
  const given = parameter(query, name)
  if (given === '') return null
  if (/^\d{1,15}$/.test(given)) return Number(given)
  throw new MirrorError('bad_request', `${name} is not a whole number`)
}
