import { describe, expect, test } from 'vitest'
import { withoutSecrets } from '../../../../src/sync/catalog/lists/items.ts'

function kept(item: object): unknown {
  return JSON.parse(withoutSecrets(Buffer.from(JSON.stringify(item)), '/v1/me').toString())
}

describe('key material', () => {
  test.each([
    'key',
    'hash',
    'secret',
    'webhook_secret',
    'webhookSecret',
    'secret_value',
    'privateKeyPem',
    'signing_key_b64',
    'api_key',
    'apiKeyHash',
    'access-token',
    'refreshTokenPlain',
    'client_credentials',
    'Passphrase',
    'pwd',
    'user_pwd',
    'basicAuth',
    'auth',
    'authorization',
    'bearer',
    'bearerToken',
    'auth_header',
    'authentication',
    'oauth',
    'user_pass',
    'db_creds',
    'session_cookie',
    'hmac',
    'key_value',
    'keyHash',
    'key_material',
    'raw_key',
    'full_key',
    'plainTextKey',
    'clientKey',
    'password_digest',
  ])('is removed under the name %s', (name) => {
    expect(kept({ id: 'a', [name]: 's3cret' })).toEqual({ id: 'a' })
    expect(kept({ id: 'a', deep: [{ [name]: ['s3cret'] }] })).toEqual({ id: 'a', deep: [{}] })
  })

  test('is recognised by its prefix under any name', () => {
    const pem = '-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----'
    expect(kept({ note: pem, sign: { value: 'whsec_MfKQ9r8G' }, id: 1 })).toEqual({
      sign: {},
      id: 1,
    })
  })

  test.each([
    '\n-----BEGIN PRIVATE KEY-----\nabc',
    ' whsec_MfKQ9r8G',
    'v1, whsec_MfKQ9r8G',
    'Bearer c2VjcmV0LXNlY3JldA==',
    'basic c2VjcmV0LXNlY3JldA==',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln',
  ])('is recognised under any name by its form: %j', (note) => {
    expect(kept({ id: 1, note })).toEqual({ id: 1 })
  })

  test('is not recognised in similar names', () => {
    const item = {
      keys: 3,
      tokens: 5,
      secret: true,
      public_key: '-----BEGIN PUBLIC KEY-----',
      cosign_public_key_url: 'https://x.example/k',
      sbom_key: 'a/b.json',
      keyboard: 'de',
      secretary: 'Ms. Whsec',
      token_type: 'Bearer',
      hashes: ['sha256:ab'],
      key_prefix: 'pk_1',
      key_id: 'k-1',
      author: 'me',
      compass: 'north',
      patch: 'CVE-2024-1',
      authenticated_at: '2026-01-01',
      description: 'Bearer of the release',
      plan: 'Basic Authentication',
    }
    expect(kept(item)).toEqual(item)
  })
})
