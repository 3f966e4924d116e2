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
    }
    expect(kept(item)).toEqual(item)
  })
})
