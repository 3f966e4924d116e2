const NAMES = new Set([
  'key',
  'secret',
  'token',
  'password',
  'api_key',
  'apikey',
  'api_secret',
  'access_token',
  'refresh_token',
  'client_secret',
  'private_key',
  'signing_secret',
  'secret_key',
  'access_key',
  'hash',
])

/**
 * Whether a member of an account's, a key's or a user's JSON holds key material: by its name, when it holds a text.
 * Such members are cut out before anything is stored.
 */
export function isSecret(name: string, value: Buffer): boolean {
  const plain = name
    .replaceAll('-', '_')
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
  return value[0] === 0x22 && (NAMES.has(plain) || NAMES.has(plain.replaceAll('_', '')))
}
