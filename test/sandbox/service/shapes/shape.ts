import type { ListForm, Shape } from './forms.ts'

export type * from './forms.ts'

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
  records: {
    ids: 'mixed',
    fields: 'snake',
    none: 'null',
    dates: 'zulu',
    within: 'nothing',
    wholeInLists: false,
  },
  artifacts: { form: 'named', pending: 0, none: 404, types: 'own' },
  settings: { wrap: 'none', secret: 'secret', complete: true },
  errors: 'message',
  events: { envelope: 'cloudevents', image: 'parts' },
  feed: 'tree',
  matrix: 'object',
  index: 'list',
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
  artifacts: { form: 'bare', pending: 0, none: 204, types: 'none' },
  settings: { wrap: 'noun', secret: 'signing_secret', complete: false },
  errors: 'text',
  events: { envelope: 'header', image: 'reference' },
  feed: 'rows',
  matrix: 'array',
  index: 'ids',
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
    within: 'nothing',
    wholeInLists: false,
  },
  artifacts: { form: 'inline', pending: 0, none: 404, types: 'other' },
  settings: { wrap: 'none', secret: 'key', complete: true },
  errors: 'nested',
  events: { envelope: 'event_type', image: 'parts' },
  feed: 'data',
  matrix: 'object',
  index: 'list',
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
  records: {
    ids: 'uuid',
    fields: 'snake',
    none: 'null',
    dates: 'zoneless',
    within: 'nothing',
    wholeInLists: false,
  },
  artifacts: { form: 'renamed', pending: 1, none: 404, types: 'other' },
  settings: { wrap: 'none', secret: 'signing_key', complete: true },
  errors: 'html',
  events: { envelope: 'untyped', image: 'parts' },
  feed: 'tree',
  matrix: 'array',
  index: 'map',
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
  records: {
    ids: 'uuid',
    fields: 'camel',
    none: 'absent',
    dates: 'zulu',
    within: 'nothing',
    wholeInLists: false,
  },
  artifacts: { form: 'redirect', pending: 0, none: 204, types: 'own' },
  settings: { wrap: 'data', secret: 'signing_secret', complete: true },
  errors: 'problem',
  events: { envelope: 'batch', image: 'parts' },
  feed: 'rows',
  matrix: 'object',
  index: 'lines',
  http: { validators: 'etag', gzip: 'never', length: true, clockSeconds: 0 },
}

const JSON_API_LISTS: ListForm = {
  items: ['data'],
  next: {
    form: 'url',
    at: ['links', 'next'],
    end: 'null',
    style: 'absolute',
    keeps: true,
    parameter: 'page[cursor]',
  },
  total: ['meta', 'total'],
  links: { at: ['links'], form: 'text' },
  ...UNLIMITED,
}

/** JSON:API: fields within `attributes`, documents within an envelope, the index without dates. */
const JSON_API: Shape = {
  ...WIRE,
  lists: JSON_API_LISTS,
  patches: JSON_API_LISTS,
  records: { ...WIRE.records, ids: 'integer', within: 'attributes' },
  artifacts: { ...WIRE.artifacts, form: 'inline', around: 'json-api' },
  settings: { wrap: 'data', secret: 'secret', complete: true },
  errors: 'nested',
  feed: 'rows',
  matrix: 'array',
  index: 'objects',
}

const HAL_LISTS: ListForm = {
  items: ['_embedded', 'items'],
  next: {
    form: 'page',
    parameter: 'page',
    first: 1,
    number: ['page', 'number'],
    pages: ['page', 'total_pages'],
  },
  links: { at: ['_links'], form: 'hal' },
  ...UNLIMITED,
}

/** HAL: pages by number, fields within the item's own name, links to documents beside others, ids by ecosystem. */
const HAL: Shape = {
  ...WIRE,
  lists: HAL_LISTS,
  patches: HAL_LISTS,
  records: { ...WIRE.records, ids: 'uuid', within: 'noun' },
  artifacts: { ...WIRE.artifacts, form: 'renamed', links: 'hal' },
  errors: 'problem',
  index: 'groups',
  http: { ...WIRE.http, validators: 'etag' },
}

const HEADER_LISTS: ListForm = {
  items: [],
  next: { form: 'header', name: 'X-Next-Cursor', parameter: 'cursor' },
  ...UNLIMITED,
}

/** Bare arrays with a cursor in a header, documents as gzip files in place, the index as a list of ids. */
const HEADERS: Shape = {
  ...WIRE,
  lists: HEADER_LISTS,
  patches: HEADER_LISTS,
  artifacts: { ...WIRE.artifacts, form: 'inline', gzipFiles: true },
  errors: 'text',
  matrix: 'array',
  index: 'ids',
  http: { ...WIRE.http, validators: 'date' },
}

const KEYED_LISTS: ListForm = {
  items: ['results'],
  next: {
    form: 'cursor',
    at: ['resume_key'],
    end: 'absent',
    parameter: 'resume_key',
    own: true,
  },
  ...UNLIMITED,
}

/** An index that is an object keyed by id, fields within `spec`, a cursor under its own name alone. */
const KEYED: Shape = {
  ...WIRE,
  lists: KEYED_LISTS,
  patches: KEYED_LISTS,
  records: { ...WIRE.records, within: 'spec' },
  index: 'keyed',
}

/** Every named shape: different deployments of one contract. */
export const SHAPES = {
  wire: WIRE,
  other: OTHER,
  link: LINK,
  items: ITEMS,
  nested: NESTED,
  camel: CAMEL,
  jsonapi: JSON_API,
  hal: HAL,
  headers: HEADERS,
  keyed: KEYED,
} as const satisfies Record<string, Shape>

/** The name of a shape. */
export type ShapeName = keyof typeof SHAPES

/** All names, for tests that run over every shape. */
export const SHAPE_NAMES = Object.keys(SHAPES) as readonly ShapeName[] // the table's own keys
