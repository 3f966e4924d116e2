import { createHmac, timingSafeEqual } from 'node:crypto'
import type { DocumentName } from './documents.ts'

/** Gives out URLs of documents that work for a while, and checks those that come back. */
export interface Presigner {
  /** A URL that was never given out before. */
  url(name: DocumentName): string
  /** Which document a request's path and query stand for, or what is wrong with them. */
  check(path: string, query: URLSearchParams): DocumentName | 'missing' | 'expired' | 'forged'
}

const PATH = /^\/artifacts\/(sbom|vex|provenance|patches|key)-(\d{1,9})\.(json|patch|pem)$/

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
      const extension = kind === 'patches' ? 'patch' : kind === 'key' ? 'pem' : 'json'
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
