import { type NegotiatedAnswer, type Policy, negotiate } from '../negotiate.ts'
import type { Documents } from './documents.ts'
import type { Presigner } from './presign.ts'
import type { Surface } from './surface.ts'

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
