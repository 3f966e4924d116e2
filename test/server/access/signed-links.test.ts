import { describe, expect, test } from 'vitest'
import { createLinks, linkProblem, readLinkTerms } from '../../../src/server/access/signed-links.ts'

const NOW = Date.UTC(2026, 4, 1) + 30_500
const PATH = '/-/artifacts/0a1b/sbom%20one.json'

function links(secret = 'one', now = () => NOW) {
  const bytes = Buffer.from(secret.padEnd(32))
  return createLinks(() => [bytes], now)
}

describe('a signed link', () => {
  const { signLink, verifyLink, expiry } = links()
  const target = signLink({ path: PATH, expiresAt: expiry() })

  test('opens until it expires, and the refusal says when it expired', () => {
    let now = NOW
    const clocked = links('one', () => now)
    expect(clocked.verifyLink(target)).toEqual({ state: 'good' })
    now = expiry() * 1000 - 1
    expect(clocked.verifyLink(target)).toEqual({ state: 'good' })
    now++
    expect(clocked.verifyLink(target)).toEqual({ state: 'expired', expiredAt: expiry() })
  })

  test('lasts at least fifteen minutes, and links made within the same minute are equal', () => {
    expect(expiry() - NOW / 1000).toBeGreaterThanOrEqual(900)
    expect(expiry() - NOW / 1000).toBeLessThan(960)
    const later = links('one', () => NOW + 10_000)
    expect(later.signLink({ path: PATH, expiresAt: later.expiry() })).toBe(target)
  })

  const [path = '', query = ''] = target.split('?')
  const [expires = '', signature = ''] = query.split('&')
  const value = signature.slice('signature='.length)
  test.each([
    ['another path', `/other?${query}`],
    ['a space that became a plus', `${path.replace('%20', '+')}?${query}`],
    ['a path that cannot be decoded', `${path.replace('%20', '%2')}?${query}`],
    ['an escaped slash', `${path.replace('/sbom', '%2Fsbom')}?${query}`],
    ['a slash at the end', `${path}/?${query}`],
    ['a later end', `${path}?expires=${expiry() + 60}&${signature}`],
    ['an end written otherwise', `${path}?expires=0${expiry()}&${signature}`],
    ['no signature', `${path}?${expires}`],
    ['an empty signature', `${path}?${expires}&signature=`],
    ['no end', `${path}?${signature}`],
    ['no query', path],
    ['a shorter signature', target.slice(0, -1)],
    ['a longer signature', `${target}A`],
    ['padding', `${target}=`],
    ['a changed signature', `${path}?${expires}&signature=${value.replace(/^./, (c) => (c === 'A' ? 'B' : 'A'))}`],
    ['another order', `${path}?${signature}&${expires}`],
    ['two ends', `${path}?expires=1&${query}`],
    ['two signatures', `${target}&signature=${value}`],
    ['more parameters', `${target}&x=1`],
    ['a fragment', `${target}#x`],
    ['escapes', `${path}?${expires}&%73ignature=${value}`],
  ])('with %s does not open', (_, changed) => {
    expect(changed).not.toBe(target)
    expect(verifyLink(changed)).toEqual({ state: 'forged' })
  })

  test('contains the media type of its document, and does not open with another type or none', () => {
    const type = 'application/spdx+json; charset="utf-8"'
    const made = signLink({ path: PATH, expiresAt: expiry(), asOf: NOW, type })
    expect(verifyLink(made)).toEqual({ state: 'good' })
    const query = (url: string): URLSearchParams => new URL(url, 'http://mirror').searchParams
    expect(readLinkTerms(query(made))).toEqual({ asOf: new Date(NOW).toISOString(), type })
    expect(readLinkTerms(query(target))).toEqual({})
    const given = /&type=[\w-]+/.exec(made)?.[0] ?? ''
    expect(given).not.toBe('')
    for (const bent of ['', '&type=', `&type=${Buffer.from('text/html').toString('base64url')}`])
      expect(verifyLink(made.replace(given, bent))).toEqual({ state: 'forged' })
    expect(verifyLink(target.replace('&', `${given}&`))).toEqual({ state: 'forged' })
  })

  test('opens when a proxy has rewritten its percent-encoding', () => {
    const scoped = signLink({ path: '/-/artifacts/@a+b%7e', expiresAt: expiry() })
    const rewritten = scoped.replace('@a+b%7e', '%40a%2bb~')
    expect(rewritten).not.toBe(scoped)
    expect(verifyLink(rewritten)).toEqual({ state: 'good' })
  })

  test('does not open on another mirror', () => {
    expect(links('two').verifyLink(target)).toEqual({ state: 'forged' })
  })

  test('that is expired and forged is refused as forged', () => {
    expect(verifyLink(`${path}?expires=1&${signature}`)).toEqual({ state: 'forged' })
  })

  test('cannot be made for a malformed path or time', () => {
    for (const odd of ['', 'x', '/a?b', '/a#b', '/a b', '/a\r\nb', '/ä', '/%zz'])
      expect(() => signLink({ path: odd, expiresAt: 1 })).toThrow()
    for (const expiresAt of [-1, 1.5, Number.NaN, Infinity]) expect(() => signLink({ path: '/a', expiresAt })).toThrow()
  })
})

test('a signed link that does not open is a 403 that says what to do', () => {
  expect(linkProblem({ state: 'good' })).toBeNull()
  const forged = linkProblem({ state: 'forged' })
  const expired = linkProblem({ state: 'expired', expiredAt: 1_777_777_777 })
  expect(forged).toMatchObject({ status: 403, error: 'link_not_valid' })
  expect(expired).toMatchObject({
    status: 403,
    error: 'link_expired',
    fields: { expiredAt: '2026-05-03T03:09:37.000Z' },
  })
  for (const problem of [forged, expired])
    expect(problem?.message).toContain('Request the path that returned this link again')
})
