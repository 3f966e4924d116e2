/** Keys from the top of a JSON value down to a place in it; `[]` is the value itself. */
export type MemberPath = readonly string[]

/** How a page names the next one. `parameter` carries the cursor back; `/patches` takes `after` beside it. */
export type NextPage =
  /** A cursor in the page; `varied` leaves it out of an only page and makes it null on the last of several. */
  | {
      form: 'cursor'
      at: MemberPath
      end: 'absent' | 'null' | 'empty' | 'varied'
      parameter: string
      /** Whether `after` is not understood. */
      own?: boolean
    }
  /** The next page's URL in the page. */
  | ({ form: 'url'; at: MemberPath; end: 'absent' | 'null' | 'empty' } & NextUrl)
  /** The next page's URL in the header `Link: <…>; rel="next"`. */
  | ({ form: 'link' } & NextUrl)
  /** A flag in the page; the cursor is the last item's id. */
  | { form: 'lastId'; at: MemberPath; parameter: string }
  /** A cursor in a header of that name. */
  | { form: 'header'; name: string; parameter: string }
  /** Pages by number; a page shows its number, and the number of pages, where these places are given. */
  | { form: 'page'; parameter: string; first: 0 | 1; number?: MemberPath; pages?: MemberPath }
  /** An offset; the header `Content-Range: items 0-24/437` says where the page is. */
  | { form: 'range'; parameter: string }
  /** Nothing: every request gives the same page. */
  | { form: 'none'; parameter: string }

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
  items: MemberPath
  next: NextPage
  /** The cursor of the page before. */
  previous?: MemberPath
  limit?: MemberPath
  total?: MemberPath
  /** An object with the URLs of the page itself, the first and the last one; `hal`: each within `{"href": …}`. */
  links?: { at: MemberPath; form: 'text' | 'hal' }
  /** Whether the total is rounded up to the next ten, and marked as an estimate beside it (`total_is_estimated`). */
  estimated?: boolean
  /** A page has no more items than this, for any `limit`. */
  largestPage: number
  /** Whether a full last page names a next one, which is then empty. */
  emptyLast: boolean
  /** Whether every page has that many items, whatever `limit` asks for. */
  ignoresLimit?: boolean
}

/** How records are written. */
export interface RecordForm {
  /** `mixed`: images have integers and everything else UUIDs; `name`: texts such as `tag-7`. */
  ids: 'mixed' | 'uuid' | 'integer' | 'name'
  /** `prefixed`: a record's own fields begin with its kind, as in `tag_name`. */
  fields: 'snake' | 'camel' | 'prefixed'
  /** Representation of a missing value. */
  none: 'null' | 'absent' | 'empty'
  /** `2025-01-31T10:20:30` and then `Z`, `.000Z`, nothing, or `+00:00`. */
  dates: 'zulu' | 'fraction' | 'zoneless' | 'offset'
  /** What has an item's fields beside its id: the item itself, `attributes` (JSON:API), `spec`, or its own name (`{"tag": {…}}`). */
  within: 'nothing' | 'attributes' | 'spec' | 'noun'
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
  /** Number of requests for an artifact that are answered 202, or as `unfinished`, before it is ready. */
  pending: number
  /** What an artifact that is not ready is answered with 200 (`shapes/around.ts`). */
  unfinished?: 'processing' | 'empty' | 'null' | 'blank' | 'spaces' | 'network'
  /** What is around an `inline` document: an envelope, a list, JSON lines, or a field that has it as a text. */
  around?: 'json-api' | 'list' | 'lines' | 'text' | 'base64'
  /**
   * Links of other kinds: `hal`: one back to the service; `documented`: one to a page that is not there; `relative`: paths
   * of the service, which ask for the credential; `location`: the same in the header `Location` of a 200.
   */
  links?: 'hal' | 'documented' | 'relative' | 'location'
  /** Whether documents are gzip files, without a Content-Encoding. */
  gzipFiles?: boolean
  /** The status for an owner that has none of a kind. */
  none: 404 | 204
  /**
   * The Content-Type of documents: `own`; `none`: `application/octet-stream`; `other`: an equivalent one, with a
   * parameter or by a vendor's name.
   */
  types: 'own' | 'none' | 'other'
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

/**
 * The patch feed: a tree by ecosystem, rows in an array, rows under `data`, or objects by distribution, release, package
 * and CVE.
 */
export type FeedForm = 'tree' | 'rows' | 'data' | 'keyed'

/** The system matrix: an object with `ecosystems`, or an array of systems. */
export type MatrixForm = 'object' | 'array'

/**
 * The OSV index: a list of `{id, modified}`; of the ids alone; of objects with `osv_id` and no date; a map from each id
 * to its date, or to an object without one; a value in each line (JSON Lines); ids by ecosystem.
 */
export type IndexForm = 'list' | 'ids' | 'objects' | 'map' | 'keyed' | 'lines' | 'groups'

/** Which validators answers carry. */
export type Validators = 'both' | 'weak' | 'etag' | 'date' | 'none'

/** The form of every answer. */
export interface HttpForm {
  validators: Validators
  /** `always`: without being asked for it too. */
  gzip: 'asked' | 'always' | 'never'
  /** Whether answers have a Content-Length; else they are chunked. */
  length: boolean
  /** By how much the service's clock is fast; deliveries are stamped with the right time all the same. */
  clockSeconds: number
  /** Paths, such as `/v1/tags/{tagID}/sbom`, that the service refuses to every credential (403). */
  refused?: readonly string[]
  /** Paths whose answer is an object keyed by id, in place of a list or an item. */
  keyed?: readonly string[]
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
  matrix: MatrixForm
  index: IndexForm
  http: HttpForm
}
