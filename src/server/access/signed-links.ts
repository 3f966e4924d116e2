import { createHmac, timingSafeEqual } from 'node:crypto'
import { toIso } from '../../base/time.ts'
import type { Problem } from '../http/problems.ts'
import type { LinkSecrets } from './link-secrets.ts'

/** How long a link is good for: long enough to follow it, as the service's own pre-signed URLs are. */
const LINK_SECONDS = 900
/** Links made within the same minute are the same text, so that the answers that carry them stay comparable. */
const STEP_SECONDS = 60

/** What to sign: the path as in a request (percent-encoded, no query), and when the link ends, unix seconds. */
interface LinkToSign {
  readonly path: string
  readonly expiresAt: number
  /** Upstream's date of the answer that has the link, unix milliseconds: that of what it opens. */
  readonly asOf?: number
  /** Media type of the document, where the answer that contains the link gives one. */
  readonly type?: string | undefined
}

/** What a link turned out to be. */
type LinkCheck =
  { readonly state: 'good' } | { readonly state: 'expired'; readonly expiredAt: number } | { readonly state: 'forged' }

/** The parameters of a link that have that date, and the type: Base64url, as proxies rewrite escapes. */
const LINK_DATE = 'as-of'
const LINK_TYPE = 'type'

/** Local URLs that open one document without a key until they expire. */
export type Links = ReturnType<typeof createLinks>

/** Links signed with HMAC-SHA256; `now` in unix milliseconds. */
export function createLinks(secrets: LinkSecrets, now: () => number) {
  const signatureOf = (secret: Uint8Array, path: string, terms: string): string =>
    createHmac('sha256', secret)
      .update(`v1\n${terms}\n${plainForm(path)}`)
      .digest('base64url')
  return {
    /** The signed request target: `path?expires=…&as-of=…&type=…&signature=…`, date and type where there are any; put a base URL before it. */
    signLink: ({ path, expiresAt, asOf, type }: LinkToSign): string => {
      const isTime = (time: number): boolean => Number.isSafeInteger(time) && time >= 0
      if (!/^\/[!-"$->@-~]*$/.test(path) || !isTime(expiresAt) || !isTime(asOf ?? 0))
        throw new Error(`this cannot be signed as a link: ${path} ${expiresAt}`)
      const date = asOf === undefined ? '' : `&${LINK_DATE}=${asOf}`
      const kind = type === undefined ? '' : `&${LINK_TYPE}=${Buffer.from(type).toString('base64url')}`
      const terms = `${expiresAt}${date}${kind}`
      return `${path}?expires=${terms}&signature=${signatureOf(secrets()[0], path, terms)}`
    },
    /** The secret that signs now, for a thread that signs too. Never show or log it. */
    secret: (): Uint8Array => secrets()[0],
    /** When a link made now should end, unix seconds: at least 15 minutes on. */
    expiry: (): number => Math.ceil((now() / 1000 + LINK_SECONDS) / STEP_SECONDS) * STEP_SECONDS,
    /** Judges a request target, as it came. */
    verifyLink: (target: string): LinkCheck => {
      const given = readLink(target)
      if (given === null) return { state: 'forged' }
      const signature = Buffer.from(given.signature)
      const isSignedWith = (secret: Uint8Array): boolean => {
        const expected = Buffer.from(signatureOf(secret, given.path, given.terms))
        return signature.length === expected.length && timingSafeEqual(signature, expected)
      }
      // Checks the signature first: the expiry is reported only for links that were signed here.
      if (!secrets().some(isSignedWith)) return { state: 'forged' }
      const expiredAt = Number.parseInt(given.terms, 10)
      return now() / 1000 < expiredAt ? { state: 'good' } : { state: 'expired', expiredAt }
    },
  }
}

/** One way to write a path: proxies take away escapes that need not be there, and add others. */
function plainForm(path: string): string {
  return path
    .split('/')
    .map((segment) => encodeURIComponent(decodeURIComponent(segment)))
    .join('/')
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

/** The parts of a link, whose query is taken exactly as it was made; null for anything else. */
function readLink(target: string) {
  const form = /^([^?]*)\?expires=(\d{1,12}(?:&as-of=\d{1,15})?(?:&type=[\w-]{1,300})?)&signature=([\w-]*)$/
  const [, path, terms, signature] = form.exec(target) ?? []
  if (path === undefined || terms === undefined || signature === undefined) return null
  return isDecodable(path) ? { path, terms, signature } : null
}

/** Parses the terms of a link. Call it for a verified link only. */
export function readLinkTerms(query: URLSearchParams): { asOf?: string; type?: string } {
  const date = query.get(LINK_DATE)
  const type = query.get(LINK_TYPE)
  return {
    ...(date !== null && { asOf: toIso(Number(date)) }),
    ...(type !== null && { type: Buffer.from(type, 'base64url').toString() }),
  }
}

/** Returns a 403 for a link that does not open, in the form of an object store; null for a valid one. */
export function linkProblem(check: LinkCheck): Problem | null {
  const again = 'Request the path that returned this link again: the answer contains a new link'
  if (check.state === 'good') return null
  if (check.state === 'forged') {
    const message = `this link was not made by this mirror, or was changed on the way. ${again}`
    return { status: 403, error: 'link_not_valid', message }
  }
  const expiredAt = toIso(check.expiredAt * 1000)
  const message = `this link has expired. ${again}`
  return { status: 403, error: 'link_expired', message, fields: { expiredAt } }
}
