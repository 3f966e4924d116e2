import type { HostileKind } from './hostile-zip.ts'
import { type Parameters, takes } from './parameters.ts'

/** A way to fail. Byte counts are of the body as sent; missing members have defaults. */
export type Fault = TransportFault | ContentFault | ArchiveFault | IndexFault | RecordFault | ListFault | ArtifactFault

/**
 * What a path leads to: the public feeds' kinds, then those of the other surfaces (an `artifact` is an
 * answer that names documents, a `document` is one of them, an `action` changes something).
 */
export type ResourceKind =
  'index' | 'archive' | 'record' | 'feed' | 'list' | 'item' | 'artifact' | 'document' | 'action'

/** Failures of the answer as a whole or on its way. */
type TransportFault =
  /** Any status, for example 429 with `Retry-After`; the body is JSON unless given. */
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: string }
  /** Stalls before the headers or after `bytes` (0) body bytes; continues after `ms`, else when the fault is cleared. */
  | { kind: 'stall'; at?: 'headers' | 'body'; bytes?: number; ms?: number; until?: AbortSignal }
  /** The body trickles. */
  | { kind: 'slow'; bytesPerSecond: number }
  /** TCP reset once `bytes` body bytes have left the process (fewer may arrive); before any header when absent. */
  | { kind: 'reset'; bytes?: number }
  /** The connection is closed in order after `bytes` (half) of the body that Content-Length promised. */
  | { kind: 'truncate'; bytes?: number }
  /** Content-Length is wrong by this many bytes, up or down; then the connection is closed. */
  | { kind: 'wrongLength'; by: number }
  /** Neither a length nor chunks nor gzip: the body ends with the connection, after `bytes` (all of it). */
  | { kind: 'unframed'; bytes?: number }
  /** To another address; default status 302. */
  | { kind: 'redirect'; location: string; status?: 301 | 302 | 303 | 307 | 308 }
  /** For requests with a Range only: a Content-Range one byte off, other bytes than asked, another total. */
  | { kind: 'wrongRange'; how?: 'shifted' | 'bytes' | 'total' }
  /** For requests with a Range only: 200 and the whole body. */
  | { kind: 'ignoreRange' }

/** Answers of status 200 whose body is not what it should be. */
type ContentFault =
  /** A proxy's page. */
  | { kind: 'html' }
  /** Zero bytes. */
  | { kind: 'empty' }
  /** Pseudo-random bytes under the right type; default 4096. */
  | { kind: 'garbage'; bytes?: number }
  /** Flips `length` (16) bytes at `offset` (the middle; negative counts from the end), validators untouched. */
  | { kind: 'corrupt'; offset?: number; length?: number }
  /** Any body. */
  | { kind: 'body'; body: Uint8Array | string; type?: string; headers?: Record<string, string> }
  /** The same body under another Content-Type; under none when it is empty. */
  | { kind: 'contentType'; type: string }
  /** `Content-Encoding: gzip` of `bytes` zero bytes. */
  | { kind: 'gzipBomb'; bytes: number }

/** For all.zip only. */
type ArchiveFault =
  /** The n-th member's (0) CRC-32 is wrong in both its headers. */
  | { kind: 'wrongCrc'; member?: number }
  /** Cut to a fraction (0.5), with a Content-Length that agrees. */
  | { kind: 'truncatedZip'; keep?: number }
  /** The feed's own members and then something hostile. */
  | { kind: 'archive'; archive: HostileKind }

/** For all.json only. */
type IndexFault =
  /** Lists only the first fraction (0.5) of the ids. */
  | { kind: 'shrinkIndex'; keep?: number }
  /** Lists ids (3) that have neither record nor member. */
  | { kind: 'ghostIds'; count?: number }
  /** Lists some ids (3) twice, the second time with another stamp. */
  | { kind: 'duplicateIds'; count?: number }
  /** An object around the array. */
  | { kind: 'notArray' }

/** For `{id}.json` only. */
type RecordFault =
  /** Newer than in index and archive: other content, `modified` forward. */
  | { kind: 'newerRecords' }
  /** Older than in the index: other content, `modified` back by days. */
  | { kind: 'staleRecords' }

/** For lists of the private surfaces only. */
type ListFault =
  /** Each page after the first names its own cursor as the next: it repeats for ever. */
  | { kind: 'repeatPage' }
  /** There is always a new next cursor; the pages are `empty` (default) or the first one again. */
  | { kind: 'endlessCursor'; items?: 'empty' | 'repeated' }
  /** For requests with a cursor only: it is refused, with status 410 unless given. */
  | { kind: 'lostPage'; status?: 400 | 404 | 410 }

/** For artifacts: the answer that names a document, and the document itself. */
type ArtifactFault =
  /** Every URL of the answer is this one, of any scheme. */
  | { kind: 'artifactUrl'; url: string }
  /**
   * A document that begins like a CycloneDX SBOM and never gets anywhere, 2 GiB unless given; sent from one
   * small buffer. Without `declared` (true) there is no Content-Length.
   */
  | { kind: 'hugeDocument'; bytes?: number; declared?: boolean }

const NUMBER = 'number'
const TEXT = 'string'

/** All kinds of fault with their parameters; `until` of a stall is for code alone. */
export const FAULT_PARAMETERS: Readonly<Record<Fault['kind'], Parameters>> = {
  status: takes('headers body', { status: NUMBER }),
  stall: takes('at bytes ms'),
  slow: takes('', { bytesPerSecond: NUMBER }),
  reset: takes('bytes'),
  truncate: takes('bytes'),
  wrongLength: takes('', { by: NUMBER }),
  unframed: takes('bytes'),
  redirect: takes('status', { location: TEXT }),
  wrongRange: takes('how'),
  ignoreRange: takes(),
  html: takes(),
  empty: takes(),
  garbage: takes('bytes'),
  corrupt: takes('offset length'),
  body: takes('type headers', { body: TEXT }),
  contentType: takes('', { type: TEXT }),
  gzipBomb: takes('', { bytes: NUMBER }),
  wrongCrc: takes('member'),
  truncatedZip: takes('keep'),
  archive: takes('', { archive: TEXT }),
  shrinkIndex: takes('keep'),
  ghostIds: takes('count'),
  duplicateIds: takes('count'),
  notArray: takes(),
  newerRecords: takes(),
  staleRecords: takes(),
  repeatPage: takes(),
  endlessCursor: takes('items'),
  lostPage: takes('status'),
  artifactUrl: takes('', { url: TEXT }),
  hugeDocument: takes('bytes declared'),
}

/** All kinds of fault, to check a kind that came as text. */
export const FAULT_KINDS = Object.keys(FAULT_PARAMETERS) as readonly Fault['kind'][]
