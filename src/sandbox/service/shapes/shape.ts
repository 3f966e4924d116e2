/** Keys from the top of a JSON value down to a place in it; `[]` is the value itself. */
export type Place = readonly string[]

/** How a page names the next one. `parameter` carries the cursor back; `/patches` takes `after` beside it. */
export type NextPage =
  /** A cursor in the page; `varied` leaves it out of an only page and makes it null on the last of several. */
  | { form: 'cursor'; at: Place; end: 'absent' | 'null' | 'empty' | 'varied'; parameter: string }
  /** The next page's URL in the page. */
  | ({ form: 'url'; at: Place; end: 'absent' | 'null' | 'empty' } & NextUrl)
  /** The next page's URL in the header `Link: <…>; rel="next"`. */
  | ({ form: 'link' } & NextUrl)
  /** A flag in the page; the cursor is the last item's id. */
  | { form: 'lastId'; at: Place; parameter: string }

/** A URL as a page gives it out. */
export interface NextUrl {
  /** The whole URL, from its path on, or its query alone. */
  style: 'absolute' | 'path' | 'query'
  /** Whether it repeats the parameters that the page was asked with. */
  keeps: boolean
  parameter: string
}

/** The envelope of a list. */
export interface ListForm {
  items: Place
  next: NextPage
  /** The cursor of the page before. */
  previous?: Place
  limit?: Place
  total?: Place
  /** Whether the total is rounded up to the next ten. */
  estimated?: boolean
  /** A page has no more items than this, whatever `limit` asks for. */
  largestPage: number
  /** Whether a full last page names a next one, which is then empty. */
  emptyLast: boolean
}

/** How records are written. */
export interface RecordForm {
  /** `mixed`: images have integers and everything else UUIDs; `name`: texts such as `tag-7`. */
  ids: 'mixed' | 'uuid' | 'integer' | 'name'
  /** `prefixed`: a record's own fields begin with its kind, as in `tag_name`. */
  fields: 'snake' | 'camel' | 'prefixed'
  /** What stands for a value that is not there. */
  none: 'null' | 'absent' | 'empty'
  /** `2025-01-31T10:20:30` and then `Z`, `.000Z`, nothing, or `+00:00`. */
  dates: 'zulu' | 'fraction' | 'zoneless' | 'offset'
  /** Whether lists show of an item what its own page shows. */
  wholeInLists: boolean
}

/** How artifacts are answered. */
export interface ArtifactForm {
  /**
   * `named` and `renamed`: URLs in an object; `bare`: a JSON string, several as an array; `inline`: the document;
   * `redirect`: 302 to the document (several patches: URLs in an object).
   */
  form: 'named' | 'renamed' | 'bare' | 'inline' | 'redirect'
  /** So many requests for an artifact are answered 202 before it is ready. */
  pending: number
  /** The status for an owner that has none of a kind. */
  none: 404 | 204
  /** Whether documents are served as `application/octet-stream`. */
  untyped: boolean
}

/** The webhook settings under `/v3`. */
export interface SettingsForm {
  /** What is around an answer: `data`, or the noun (`webhook`, `delivery`). */
  wrap: 'none' | 'data' | 'noun'
  /** The field of the signing secret, before `fields` of the records applies. */
  secret: string
  /** Whether subscriptions can be listed, read and deleted; the contract shows none of it. */
  complete: boolean
}

/** The body of an error on the remediation surface; the identity surface's is in the contract. */
export type ErrorForm = 'message' | 'nested' | 'problem' | 'text' | 'html' | 'empty'

/** How an event is sent. */
export interface EventForm {
  /**
   * `cloudevents`; `header`: the type in `X-Event-Type`; `event_type`: under that name; `untyped`: the type nowhere;
   * `batch`: several events in a body, one for each architecture of each tag.
   */
  envelope: 'cloudevents' | 'header' | 'event_type' | 'untyped' | 'batch'
  /** The image in three fields (repository, tag, digest), or in one text. */
  image: 'parts' | 'reference'
}

/** The patch feed: a tree by ecosystem, rows in an array, rows under `data`. */
export type FeedForm = 'tree' | 'rows' | 'data'

/** Which validators answers carry. */
export type Validators = 'both' | 'weak' | 'etag' | 'date' | 'none'

/** What holds for every answer. */
export interface HttpForm {
  validators: Validators
  /** `always`: without being asked for it too. */
  gzip: 'asked' | 'always' | 'never'
  /** Whether answers say their length; else they are chunked. */
  length: boolean
  /** By how much the service's clock is fast; deliveries are stamped with the right time all the same. */
  clockSeconds: number
}

/** One reading of everything that the contract leaves open (service API, sections 4, 6 and 7). */
export interface Shape {
  lists: ListForm
  /** The envelope of `/patches`. */
  patches: ListForm
  records: RecordForm
  artifacts: ArtifactForm
  settings: SettingsForm
  errors: ErrorForm
  events: EventForm
  feed: FeedForm
  http: HttpForm
}

/** Changes to some forms of a shape; of a form made of fields, only those that are given. */
export type ShapeChanges = { [Part in keyof Shape]?: Partial<Shape[Part]> }

/** A shape that differs from another one in some forms, to try any combination. */
export function shaped(base: ShapeName | Shape, changes: ShapeChanges): Shape {
  const from = shapeOf(base)
  const parts = Object.entries(from).map(([name, form]: [string, unknown]) => {
    const change: unknown = changes[name as keyof Shape] // the shape's own keys
    return [name, isFields(form) && isFields(change) ? { ...form, ...change } : (change ?? form)]
  })
  return Object.fromEntries(parts) as Shape // the same keys, with forms of the same kinds
}

function isFields(form: unknown): form is object {
  return typeof form === 'object' && form !== null
}

/** The shape of that name; a shape is given back. */
export function shapeOf(named: ShapeName | Shape): Shape {
  return typeof named === 'string' ? SHAPES[named] : named
}

const UNLIMITED = { largestPage: Infinity, emptyLast: false } as const

const WIRE_LISTS: ListForm = {
  items: ['data'],
  next: { form: 'cursor', at: ['cursor', 'after'], end: 'varied', parameter: 'after' },
  previous: ['cursor', 'before'],
  limit: ['cursor', 'limit'],
  total: ['cursor', 'total_count'],
  ...UNLIMITED,
}

/** The payloads of the wire facts. */
const WIRE: Shape = {
  lists: WIRE_LISTS,
  patches: {
    ...WIRE_LISTS,
    items: ['tickets'],
    next: { form: 'cursor', at: ['cursor', 'after'], end: 'empty', parameter: 'after' },
  },
  records: { ids: 'mixed', fields: 'snake', none: 'null', dates: 'zulu', wholeInLists: false },
  artifacts: { form: 'named', pending: 0, none: 404, untyped: false },
  settings: { wrap: 'none', secret: 'secret', complete: true },
  errors: 'message',
  events: { envelope: 'cloudevents', image: 'parts' },
  feed: 'tree',
  http: { validators: 'both', gzip: 'asked', length: true, clockSeconds: 0 },
}

/** The same content under other names. */
const OTHER: Shape = {
  ...WIRE,
  lists: {
    items: ['results'],
    next: { form: 'cursor', at: ['pagination', 'next'], end: 'null', parameter: 'after' },
    previous: ['pagination', 'previous'],
    total: ['pagination', 'total'],
    ...UNLIMITED,
  },
  patches: {
    items: ['items'],
    next: { form: 'cursor', at: ['next_cursor'], end: 'absent', parameter: 'after' },
    total: ['total'],
    ...UNLIMITED,
  },
  artifacts: { ...WIRE.artifacts, form: 'renamed' },
}

const LINK_LISTS: ListForm = {
  items: [],
  next: { form: 'link', style: 'absolute', keeps: true, parameter: 'cursor' },
  ...UNLIMITED,
}

/** Bare arrays, the next page in a header. */
const LINK: Shape = {
  lists: LINK_LISTS,
  patches: LINK_LISTS,
  records: { ...WIRE.records, dates: 'offset', wholeInLists: true },
  artifacts: { form: 'bare', pending: 0, none: 204, untyped: true },
  settings: { wrap: 'noun', secret: 'signing_secret', complete: false },
  errors: 'text',
  events: { envelope: 'header', image: 'reference' },
  feed: 'rows',
  http: { validators: 'weak', gzip: 'asked', length: true, clockSeconds: 0 },
}

const ITEMS_LISTS: ListForm = {
  items: ['items'],
  next: { form: 'cursor', at: ['next_cursor'], end: 'empty', parameter: 'after' },
  largestPage: 3,
  emptyLast: true,
}

/** Integer ids, no validators, everything gzipped, pages smaller than asked, the documents themselves. */
const ITEMS: Shape = {
  lists: ITEMS_LISTS,
  patches: ITEMS_LISTS,
  records: {
    ids: 'integer',
    fields: 'prefixed',
    none: 'empty',
    dates: 'fraction',
    wholeInLists: false,
  },
  artifacts: { form: 'inline', pending: 0, none: 404, untyped: false },
  settings: { wrap: 'none', secret: 'key', complete: true },
  errors: 'nested',
  events: { envelope: 'event_type', image: 'parts' },
  feed: 'data',
  http: { validators: 'none', gzip: 'always', length: true, clockSeconds: 0 },
}

const NESTED_LISTS: ListForm = {
  items: ['result', 'entries'],
  next: {
    form: 'url',
    at: ['result', 'links', 'next'],
    end: 'null',
    style: 'path',
    keeps: true,
    parameter: 'page_token',
  },
  total: ['result', 'total'],
  estimated: true,
  ...UNLIMITED,
}

/** Lists two levels deep with the next page's URL, UUIDs, artifacts that are made when asked for, a clock that is off. */
const NESTED: Shape = {
  lists: NESTED_LISTS,
  patches: NESTED_LISTS,
  records: { ids: 'uuid', fields: 'snake', none: 'null', dates: 'zoneless', wholeInLists: false },
  artifacts: { form: 'renamed', pending: 1, none: 404, untyped: false },
  settings: { wrap: 'none', secret: 'signing_key', complete: true },
  errors: 'html',
  events: { envelope: 'untyped', image: 'parts' },
  feed: 'tree',
  http: { validators: 'date', gzip: 'asked', length: false, clockSeconds: 600 },
}

const CAMEL_LISTS: ListForm = {
  items: ['data'],
  next: { form: 'lastId', at: ['has_more'], parameter: 'starting_after' },
  ...UNLIMITED,
}

/** `has_more` and the last item's id, camelCase, redirects to artifacts, wrapped settings. */
const CAMEL: Shape = {
  lists: CAMEL_LISTS,
  patches: CAMEL_LISTS,
  records: { ids: 'uuid', fields: 'camel', none: 'absent', dates: 'zulu', wholeInLists: false },
  artifacts: { form: 'redirect', pending: 0, none: 204, untyped: false },
  settings: { wrap: 'data', secret: 'signing_secret', complete: true },
  errors: 'problem',
  events: { envelope: 'batch', image: 'parts' },
  feed: 'rows',
  http: { validators: 'etag', gzip: 'never', length: true, clockSeconds: 0 },
}

/** Every named shape: different deployments of one contract. */
export const SHAPES = {
  wire: WIRE,
  other: OTHER,
  link: LINK,
  items: ITEMS,
  nested: NESTED,
  camel: CAMEL,
} as const satisfies Record<string, Shape>

/** The name of a shape. */
export type ShapeName = keyof typeof SHAPES

/** All names, for tests that run over every shape. */
export const SHAPE_NAMES = Object.keys(SHAPES) as readonly ShapeName[] // the table's own keys
