import { hasKeys } from './bundles.ts'
import { type Checked, place } from '../problems.ts'

function isFleet({ values, refused }: Checked): boolean {
  return typeof values.get('fleet.url') === 'string' && !refused.has('fleet.url')
}

/** Problems of a fleet's settings that show only together: a role without its keys, two sources of the same data. */
export function checkFleet(checked: Checked): string[] {
  if (!isFleet(checked)) return []
  return [...checkRoleKeys(checked), ...checkInbox(checked)]
}

function checkRoleKeys(checked: Checked): string[] {
  const { values, refused } = checked
  const role = values.get('fleet.role')
  const key = role === 'reader' ? 'bundle.trustedKeys' : 'bundle.signingKeys'
  if (refused.has(key) || refused.has('fleet.role')) return []
  if (hasKeys(values.get(key))) return []
  const what =
    role === 'reader'
      ? 'a reader needs the public keys of the writers. Give bundle.trustedKeys.'
      : `the role ${String(role)} publishes, and there is no key to sign with ("patchmirror bundle keygen FILE" makes one). ` +
        'Give bundle.signingKeys, or set fleet.role: reader.'
  return [`${place(checked, 'fleet.url')}: ${what}`]
}

function checkInbox(checked: Checked): string[] {
  const { values, refused } = checked
  if (refused.has('bundle.inbox') || typeof values.get('bundle.inbox') !== 'string') return []
  return [
    `${place(checked, 'bundle.inbox')}: this mirror gets its data by ${place(checked, 'fleet.url')}, and a bundle from ` +
      'elsewhere would break the order of generations. Set one of the two to null.',
  ]
}

/** Settings of a fleet that come to nothing, or to the contrary, beside others. */
export function findFleetContradictions(checked: Checked): string[] {
  return isFleet(checked) ? [...readerWithCredential(checked), ...endpointOfFolder(checked)] : fleetWithoutUrl(checked)
}

function readerWithCredential(checked: Checked): string[] {
  const { values } = checked
  if (values.get('fleet.role') !== 'reader') return []
  return ['upstream.apiKey', 'upstream.token', 'oauth.clientSecret', 'identity.apiKey']
    .filter((key) => (values.get(key) ?? null) !== null)
    .map(
      (key) =>
        `${place(checked, key)}: this mirror is a reader (${place(checked, 'fleet.role')}) and never asks upstream. ` +
        'Remove the credential: what is not there cannot be stolen.',
    )
}

function endpointOfFolder(checked: Checked): string[] {
  const { values } = checked
  if (!String(values.get('fleet.url')).startsWith('file:')) return []
  return ['fleet.endpoint']
    .filter((key) => (values.get(key) ?? null) !== null)
    .map(
      (key) =>
        `${place(checked, key)}: ${place(checked, 'fleet.url')} is a folder, which has no endpoint. Remove the line.`,
    )
}

function fleetWithoutUrl(checked: Checked): string[] {
  const { origins, values } = checked
  const given = [...origins].find(
    ([key, origin]) => key.startsWith('fleet.') && origin !== 'default' && (values.get(key) ?? null) !== null,
  )
  if (given === undefined) return []
  return [`${place(checked, given[0])}: fleet.url is not set, so there is no fleet. Give the URL.`]
}
