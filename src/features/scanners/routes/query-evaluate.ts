import { MirrorError } from '../../../base/errors.ts'
import { type QuerySource, type ResultPage, search } from '../records/search.ts'
import { countValues } from '../../../base/json/values.ts'
import { type Query, objectOf, readQuestion } from '../../../documents/records/query.ts'
import type { Share } from '../../../base/connections/account.ts'
import { type BriefPage, type OsvAnswer, batchList, vulnerabilityList } from './query-answers.ts'
import type { FairQueue } from '../../../base/pacing.ts'

/** The two operations that evaluate. */
export type QueryOperation = 'query' | 'querybatch'

/** Bounds of one query and its answer. The numbers are osv.dev's, except the bytes of a page. */
const QUERY_BOUNDS = {
  /** Queries in a batch. */
  queries: 1000,
  /** Records in one page, and in each page of a batch that has returned more than `many` in all. */
  records: 1000,
  recordsAfter: 5,
  many: 3000,
  bytes: 16 * 1024 * 1024,
  queryMs: 20_000,
  batchMs: 35_000,
} as const

/** What an evaluation needs besides its request. */
interface Evaluation {
  readonly source: QuerySource
  /** Why records of an ecosystem are not mirrored here; null: they are. */
  readonly leftOut: (ecosystem: string) => string | null
  /** The turns of its client among those of others. */
  readonly turns: Pick<FairQueue, 'next'>
  readonly now: () => number
  /** Reports whether the client is gone. */
  readonly isGone: () => boolean
  /** What the records that are found count in; nowhere when not given. */
  readonly share?: Pick<Share, 'take' | 'give'>
  /** Reports whether it had to make room for another client. */
  readonly isCrowded?: () => boolean
}

/**
 * Evaluates a request's body. Throws `bad_request`, `not_ready` when there is no room for what is found, and `aborted` once the
 * client is gone.
 */
export function evaluate(operation: QueryOperation, body: Buffer, evaluation: Evaluation): Promise<OsvAnswer> {
  const request = readJson(body)
  return operation === 'query' ? evaluateOne(request, evaluation) : evaluateBatch(request, evaluation)
}

async function evaluateOne(request: unknown, evaluation: Evaluation): Promise<OsvAnswer> {
  const { queryMs, records } = QUERY_BOUNDS
  const page = pageWith(evaluation, evaluation.now() + queryMs)
  const { found } = await page(request, records)
  return vulnerabilityList(found)
}

async function evaluateBatch(request: unknown, evaluation: Evaluation): Promise<OsvAnswer> {
  const { queries: mostQueries, batchMs, records, recordsAfter, many } = QUERY_BOUNDS
  const { queries = [] } = objectOf(request, 'the request')
  if (!Array.isArray(queries))
    throw new MirrorError('bad_request', 'Invalid JSON payload received: queries must be a list.')
  if (queries.length > mostQueries) throw new MirrorError('bad_request', 'Too many queries.')
  for (const [at, query] of queries.entries()) checkQuery(query, at, evaluation)
  const page = pageWith(briefly(evaluation), evaluation.now() + batchMs)
  const pages: BriefPage[] = []
  let returned = 0
  for (const [at, query] of queries.entries()) {
    if (at > 0) await evaluation.turns.next()
    const most = returned > many ? recordsAfter : records
    const { found, done } = await naming(at, () => page(query, most))
    returned += found.found.length
    pages.push(withoutContent(found))
    done()
  }
  return batchList(pages)
}

/** A batch names its records only, so that their one body is not made. */
function briefly(evaluation: Evaluation): Evaluation {
  const { source } = evaluation
  const { anywhere } = source
  const brief = (record: ReturnType<QuerySource['readRecord']>): typeof record => {
    if (record === null) return null
    const { content, prefixes } = record
    return { content, prefixes }
  }
  return {
    ...evaluation,
    source: {
      ...source,
      readRecord: (ecosystem, id) => brief(source.readRecord(ecosystem, id)),
      ...(anywhere && {
        anywhere: { ...anywhere, readRecord: (id) => brief(anywhere.readRecord(id)) },
      }),
    },
  }
}

/** A batch names its records only: their content would be kept until the last query is done. */
function withoutContent({ found, next }: ResultPage): BriefPage {
  return { found: found.map(({ id, modified, prefixes }) => ({ id, modified, prefixes })), next }
}

/** Refuses a batch for a query that makes no sense before any work is done for the others. */
function checkQuery(query: unknown, at: number, evaluation: Pick<Evaluation, 'leftOut'>): void {
  try {
    readApiQuestion(query, evaluation)
  } catch (error) {
    throw atIndex(error, at)
  }
}

async function naming<Value>(at: number, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    throw atIndex(error, at)
  }
}

function atIndex(error: unknown, at: number): unknown {
  if (!(error instanceof MirrorError) || error.code !== 'bad_request') return error
  const message = `${error.message.replace(/\.$/, '')} at index: ${at}.`
  return new MirrorError('bad_request', message, { cause: error })
}

/** A page, and what gives back the room for its records. */
interface CountedPage {
  readonly found: ResultPage
  readonly done: () => void
}

function pageWith(evaluation: Evaluation, until: number) {
  const { source, turns, now, isGone, share, isCrowded } = evaluation
  return async (query: unknown, records: number): Promise<CountedPage> => {
    let bytes = 0
    const done = (): void => share?.give(bytes)
    const bounds = {
      records,
      bytes: QUERY_BOUNDS.bytes,
      isLate: () => now() > until,
      async pause() {
        await turns.next()
        if (isCrowded?.() === true) throw new MirrorError('not_ready', CROWDED)
        if (isGone()) throw new MirrorError('aborted', 'the client has left')
      },
      onFound(more: number) {
        if (share?.take(more) === false) throw new MirrorError('not_ready', CROWDED)
        bytes += more
      },
    }
    try {
      return { found: await search(source, readApiQuestion(query, evaluation), bounds), done }
    } catch (error) {
      done()
      throw error
    }
  }
}

/** Ecosystems whose ranges osv.dev passes over where no release is named: each release has fixes of its own. */
const RANGES_OF_RELEASES = new Set(['Alpine', 'Ubuntu'])

/** Throws `bad_request` also where the mirror leaves the ecosystem out: an empty answer would say that there is nothing. */
function readApiQuestion(query: unknown, { leftOut }: Pick<Evaluation, 'leftOut'>): Query {
  const question = readQuestion(query)
  const name = question.ecosystem?.name ?? ''
  const why = name === '' ? null : leftOut(name)
  if (why !== null) throw new MirrorError('bad_request', why)
  return { ...question, isListedOnly: RANGES_OF_RELEASES.has(name) }
}

const CROWDED = 'Too many requests and answers wait: try again later.'

/** Values of a body, at most: a batch has a few for each query, and the parser keeps the serving thread for as long as it takes. */
const MAX_VALUES = 200_000

function readJson(body: Buffer): unknown {
  if (body.length === 0) return {}
  if (countValues(body) > MAX_VALUES)
    throw new MirrorError('bad_request', `Invalid JSON payload received: more than ${MAX_VALUES} values.`)
  try {
    return JSON.parse(body.toString()) as unknown
  } catch (cause) {
    throw new MirrorError('bad_request', 'Invalid JSON payload received.', { cause })
  }
}
