import { type Fields, fieldsOf } from '../base/json/objects.ts'

/** Returns a member of a JSON object by its name: from an outline, which has short texts alone, or from parsed JSON. */
export type Members = (name: string) => unknown

/** Returns the members of a parsed object. */
export function membersIn(fields: Fields): Members {
  return (name) => fields[name]
}

/** Reports whether an object is a document in CycloneDX. */
export function isCycloneDx(member: Members): boolean {
  return member('bomFormat') === 'CycloneDX'
}

/** Reports whether an object is a document in SPDX 2. */
export function isSpdx2(member: Members): boolean {
  return textOf(member('spdxVersion')).startsWith('SPDX-')
}

/** Reports whether an object is a document in SPDX 3: elements with its context. */
export function isSpdx3(member: Members): boolean {
  return textOf(member('@context')).includes('spdx.org')
}

/** Reports whether an object is a document in OpenVEX. */
export function isOpenVex(member: Members): boolean {
  return textOf(member('@context')).includes('openvex')
}

/** Reports whether an object may be a document in CSAF: its header is to say so. */
export function hasCsafHeader(member: Members): boolean {
  return member('document') !== undefined
}

/** Reports whether a parsed object is a document in CSAF. */
export function isCsaf({ document }: Fields): boolean {
  return textOf(fieldsOf(document)['csaf_version']) !== ''
}

/** Reports whether an object is an entry of a scanner database: such databases publish CSAF in one that names its schema. */
export function isCsafItem(member: Members): boolean {
  return member('item') !== undefined && textOf(member('schema')).includes('csaf')
}

/** Reports whether an object is an in-toto statement. */
export function isStatement(member: Members): boolean {
  return textOf(member('_type')).startsWith('https://in-toto.io/Statement/')
}

/** Reports whether an object is a DSSE envelope. */
export function isEnvelope(member: Members): boolean {
  return member('payloadType') !== undefined && member('payload') !== undefined
}

/** Reports whether an object is a Sigstore bundle. */
export function isBundle(member: Members): boolean {
  return member('dsseEnvelope') !== undefined || member('verificationMaterial') !== undefined
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
