import { type Mutation, mutation } from './mutation.ts'
import { TRANSFER_MUTATIONS } from './transfer.ts'

/** Defects in what fetches, judges and stores: upstream, sync, guard, store, archive, zip, query, judging, findings. */
const CORE_MUTATIONS: readonly Mutation[] = [
  mutation('a request is tried once less than the setting says', {
    file: 'src/upstream/http/retry.ts',
    from: 'if (failures > config.retries) throw error',
    to: 'if (failures >= config.retries) throw error',
    tests: ['test/upstream/http/request.test.ts'],
  }),
  mutation('a redirect to https on another port gets the credential', {
    file: 'src/upstream/http/destinations.ts',
    from: 'sameHost(from, to) && (!credential || to.host === from.host)',
    to: 'sameHost(from, to) && (credential || to.host === from.host)',
    tests: ['test/upstream/http/destinations.test.ts'],
  }),
  mutation('a page that says it is the last is followed by its cursor', {
    file: 'src/upstream/lists/cursor.ts',
    from: 'if (best === null || flag === false)',
    to: 'if (best === null)',
    tests: ['test/upstream/lists/shape.test.ts'],
  }),
  mutation('a probe that is throttled proves that a list ends', {
    file: 'src/upstream/lists/next-page.ts',
    from: 'status < 500 && status !== 429) return null',
    to: 'status < 500) return null',
    tests: ['test/upstream/lists/next-page.test.ts'],
  }),
  mutation('a list with fewer items than upstream counts is whole', {
    file: 'src/sync/catalog/lists/completeness.ts',
    from: 'return total === null || total === found\n',
    to: 'return total === null || total >= found\n',
    tests: ['test/sync/catalog/lists/walks.test.ts'],
  }),
  mutation('one list that fails does not keep the catalog from being confirmed', {
    file: 'src/sync/catalog/publish.ts',
    from: 'if (fixed.some(isUnknown)) return null',
    to: 'if (fixed.every(isUnknown)) return null',
    tests: ['test/sync/catalog/lists/walks.test.ts'],
  }),
  mutation('a refresh settles the quarantine of what it did not look at', {
    file: 'src/sync/catalog/publish.ts',
    from: 'if (isNarrow(context)) return // a refresh may not have walked the quarantined part',
    to: '',
    tests: ['test/sync/refresh.test.ts'],
    suite: 'long',
  }),
  mutation('a small feed may lose every record at once', {
    file: 'src/sync/refusals.ts',
    from: 'if (stored > 0 && removed === stored)',
    to: 'if (stored > limits.count && removed === stored)',
    tests: ['test/sync/osv/quarantine.test.ts'],
  }),
  mutation('a run that skipped an entry of the index is complete', {
    file: 'src/sync/osv/outcome.ts',
    from: 'return missing.size === 0 && unusable === 0',
    to: 'return missing.size === 0 && unusable >= 0',
    tests: ['test/sync/osv/hostile.test.ts'],
  }),
  mutation('a record whose content is in doubt is not requested again', {
    file: 'src/sync/osv/diff.ts',
    from: 'if (store.readEntry(id)?.modified === ids.modifiedAt(ordinal)) changed.push(id)',
    to: 'if (store.readEntry(id)?.modified !== ids.modifiedAt(ordinal)) changed.push(id)',
    tests: ['test/sync/osv/reconcile.test.ts'],
  }),
  mutation('a source that never succeeded is not caught up at the start', {
    file: 'src/sync/schedule.ts',
    from: 'if (lastSuccess === null || lastSuccess > wall) return true',
    to: 'if (lastSuccess === null) return false',
    tests: ['test/sync/schedule.test.ts'],
  }),
  mutation('the guard does not judge the last records of a run', {
    file: 'src/guard/guard.ts',
    from: '      seen.decide()\n      noteRuledOut(',
    to: '      noteRuledOut(',
    tests: ['test/guard/guard.test.ts'],
  }),
  mutation('a transaction that refuses its work commits it', {
    file: 'src/store/writes.ts',
    from: "db.exec(result.commit ? 'COMMIT' : 'ROLLBACK')",
    to: "db.exec('COMMIT')",
    tests: ['test/store/writes.test.ts'],
  }),
  mutation('of several versions replaced in a transaction the last is kept', {
    file: 'src/store/osv/superseded.ts',
    from: 'INSERT OR IGNORE INTO osv_superseded',
    to: 'INSERT OR REPLACE INTO osv_superseded',
    tests: ['test/store/osv/superseded.test.ts'],
  }),
  mutation('a name that was added and then changed is told as changed', {
    file: 'src/store/changes/log.ts',
    from: "if (CHANGE_KINDS[first] === 'added') return 'added'",
    to: "if (CHANGE_KINDS[first] === 'added' && last === first) return 'added'",
    tests: ['test/store/changes/log.test.ts'],
  }),
  mutation('an unchanged part of the archive is not compared with the index', {
    file: 'src/archive/patch.ts',
    from: 'if (!find(entries, start, idEnd)) throw',
    to: 'if (!find(entries, start, idEnd) && count === 0) throw',
    tests: ['test/sync/osv/archive/archive-patch.test.ts'],
  }),
  mutation('a member with bytes behind its stream is stored', {
    file: 'src/archive/zip/member.ts',
    from: 'engine.bytesWritten !== packed.length',
    to: 'engine.bytesWritten > packed.length',
    tests: ['test/archive/zip/damage.test.ts'],
  }),
  mutation('a range whose last affected version cannot be read has no end', {
    file: 'src/features/scanners/records/ranges.ts',
    from: 'isUnbegun = true\n        else isOpen = true',
    to: "isUnbegun = true\n        else isOpen ||= kind === 'fixed'",
    tests: ['test/features/scanners/records/affected.test.ts'],
  }),
  mutation('Debian versions order other signs among the letters', {
    file: 'src/base/versions/dpkg.ts',
    from: 'code : code + 256',
    to: 'code : code + 32',
    tests: ['test/base/versions/orders.test.ts'],
  }),
  mutation('an Alpine fraction is one only if both parts begin with zero', {
    file: 'src/base/versions/apk.ts',
    from: "(one.text.startsWith('0') || other.text.startsWith('0'))",
    to: "(one.text.startsWith('0') && other.text.startsWith('0'))",
    tests: ['test/base/versions/orders.test.ts'],
  }),
  mutation('of VEX statements of one time the one that rules out counts', {
    file: 'src/documents/vex/rule.ts',
    from: 'own === other ? !before.isOpen',
    to: 'own === other ? before.isOpen',
    tests: ['test/documents/vex/rule.test.ts'],
  }),
  mutation('a statement of another tag on a component counts although this tag says otherwise', {
    file: 'src/documents/vex/rule.ts',
    from: 'if (open !== undefined) return { at: open.at, ruledOutBy: null }',
    to: 'if (open === null) return { at: "", ruledOutBy: null }',
    tests: ['test/documents/vex/rule.test.ts'],
  }),
  mutation('a record of another release is about a package', {
    file: 'src/base/identity/meant.ts',
    from: "return release === '' || coversRelease(base, release, wanted.release)",
    to: "return release === '' || release !== wanted.release",
    tests: ['test/base/identity/releases.test.ts'],
  }),
  mutation('a package is not asked by its source package', {
    file: 'src/base/identity/identity.ts',
    from: 'return [...asked, ...asked.flatMap(certified), ...asked.flatMap(builtByVendor)]',
    to: 'return [own, ...certified(own)]',
    tests: ['test/features/match/judging/releases.test.ts'],
  }),
  mutation('a range without an order passes as compared', {
    file: 'src/features/scanners/records/affected.ts',
    from: "if (order === null) return own === null ? 'no_order' : 'bounds'",
    to: "if (order === null) return 'clear'",
    tests: ['test/features/scanners/records/affected.test.ts'],
  }),
  mutation('a list of versions hides a range beside it that was not compared', {
    file: 'src/features/scanners/records/affected.ts',
    from: 'if (uncompared !== null) return uncompared',
    to: 'if (uncompared !== null && !isCompared) return uncompared',
    tests: ['test/features/scanners/records/affected.test.ts'],
  }),
  mutation('a signature about another image is verified', {
    file: 'src/documents/signatures/check.ts',
    from: 'if (named !== undefined) return named',
    to: 'return named ?? own',
    tests: ['test/documents/signatures/check.test.ts'],
  }),
  mutation('the guard forgets what earlier runs of the window published', {
    file: 'src/guard/verdict.ts',
    from: 'belowRows.push({ kind, name,',
    to: 'belowLines.length > 1e9 && belowRows.push({ kind, name,',
    tests: ['test/sync/osv/window.test.ts'],
  }),
  mutation('a finding that stays patched is counted as patched no more', {
    file: 'src/features/findings/judge/patches.ts',
    from: 'if (!records.delete(record)) records.add(record)',
    to: 'records.add(record)',
    tests: ['test/features/findings/vex.test.ts'],
    suite: 'long',
  }),
  mutation('a fix under another text of the same version is lowered', {
    file: 'src/documents/differences/differences.ts',
    from: "if (difference < 0) return 'fix_lowered'",
    to: "if (difference <= 0) return 'fix_lowered'",
    tests: ['test/documents/differences/differences.test.ts'],
  }),
]

/** Defects that the suites must find; each is one that a change could bring and a reader could miss. */
export const MUTATIONS: readonly Mutation[] = [...CORE_MUTATIONS, ...TRANSFER_MUTATIONS]
