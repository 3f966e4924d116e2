import { createHmac, timingSafeEqual } from 'node:crypto'
import type { DocumentName, Documents } from './data/documents.ts'
import { type NegotiatedAnswer, type Policy, negotiate } from '../http/negotiate.ts'
import type { Surface } from './surface.ts'

/** Gives out URLs of documents that work for a while, and checks those that come back. */
export interface Presigner {
  /** A URL that was never given out before. */
  url(name: DocumentName): string
  /** Returns the document of a request's path and query, or what is wrong with them. */
  check(path: string, query: URLSearchParams): DocumentName | 'missing' | 'expired' | 'forged'
}

const PATH = /^\/artifacts\/(sbom|vex|provenance|patches|key)-(\d{1,9})\.(json|patch|pem)$/

/** Of documents that are no JSON. */
const EXTENSIONS: Partial<Record<DocumentName['kind'], string>> = { patches: 'patch', key: 'pem' }

/** URLs under `root` that live for `seconds` by the given clock. */
export function createPresigner(
  { seed, seconds, now }: { seed: number; seconds: number; now: () => number },
  root: () => string,
): Presigner {
  let given = 0
  const signature = (path: string, expires: string, nonce: string): string =>
    createHmac('sha256', `sandbox ${seed}`).update(`${path}\n${expires}\n${nonce}`).digest('hex')
  return {
    url({ kind, number }) {
      const extension = EXTENSIONS[kind] ?? 'json'
      const path = `/artifacts/${kind}-${number}.${extension}`
      const expires = String(Math.floor(now() / 1000) + seconds)
      const nonce = String(given++)
      const query = `X-Expires=${expires}&X-Nonce=${nonce}&X-Signature=${signature(path, expires, nonce)}`
      return `${root()}${path}?${query}`
    },
    check(path, query) {
      const [, kind, number] = PATH.exec(path) ?? []
      if (kind === undefined) return 'missing'
      const expires = query.get('X-Expires') ?? ''
      const right = signature(path, expires, query.get('X-Nonce') ?? '')
      if (!same(right, query.get('X-Signature') ?? '')) return 'forged'
      if (now() >= Number(expires) * 1000) return 'expired'
      return { kind: kind as DocumentName['kind'], number: Number(number) } // the expression's words
    },
  }
}

function same(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}

/**
 * The host that pre-signed URLs lead to: an object store. The URL is the permission; a credential beside it is an
 * error, as real stores have it, so that a client that sends one to strangers cannot go unnoticed.
 */
export function createArtifactHost(presigner: Presigner, documents: Documents): Surface {
  return {
    host: 'artifacts',
    owns: () => true,
    kindOf: () => 'document',
    answer: ({ method, path, query, headers }, policy: Policy) => {
      const answer = (): NegotiatedAnswer => {
        if (method !== 'GET' && method !== 'HEAD') return refusal(405, 'MethodNotAllowed')
        if (headers.authorization !== undefined) return refusal(400, 'InvalidArgument')
        if (path === '/loop') return { ...refusal(302, 'Redirect'), headers: { Location: '/loop' } }
        const found = presigner.check(path, query)
        if (found === 'missing') return refusal(404, 'NoSuchKey')
        if (found === 'forged') return refusal(403, 'SignatureDoesNotMatch')
        if (found === 'expired') return refusal(403, 'AccessDenied')
        return negotiate(method, headers, documents.read(found), policy)
      }
      return Promise.resolve(answer())
    },
  }
}

const MESSAGES = {
  MethodNotAllowed: 'The specified method is not allowed against this resource.',
  InvalidArgument: 'Only one auth mechanism allowed; the query string or the Authorization header.',
  Redirect: 'Try again elsewhere.',
  NoSuchKey: 'The specified key does not exist.',
  SignatureDoesNotMatch: 'The request signature does not match the signature you provided.',
  AccessDenied: 'Request has expired',
} as const

function refusal(status: number, code: keyof typeof MESSAGES): NegotiatedAnswer {
  const head = '<?xml version="1.0" encoding="UTF-8"?>\n'
  const text = `${head}<Error><Code>${code}</Code><Message>${MESSAGES[code]}</Message></Error>`
  const body = Buffer.from(text)
  return {
    status,
    headers: { 'Content-Type': 'application/xml' },
    length: body.length,
    body: () => [body],
  }
}
