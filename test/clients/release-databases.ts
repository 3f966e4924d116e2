import { type Built, buildProgram } from './toolbox.ts'
import { TRIVY_DB } from './trivy-database.ts'

/** The version of grype, and of the library that writes its database. */
export const GRYPE = 'v0.121.2'

/** Writes a folder's database by a list of records, `{id, ecosystem, name, fixed}`: of grype, in the form of its own library. */
export function buildGrypeWriter(): Promise<Built> {
  const modules = { 'github.com/anchore/grype': GRYPE }
  return buildProgram({ name: 'grype-release-writer', modules, source: GRYPE_WRITER })
}

/** Writes one of Trivy's by the same list. */
export function buildTrivyWriter(): Promise<Built> {
  const modules = { 'github.com/aquasecurity/trivy-db': TRIVY_DB }
  return buildProgram({ name: 'trivy-release-writer', modules, source: TRIVY_WRITER })
}

const READ = `
type row struct{ ID, Ecosystem, Name, Fixed string }

func main() {
	err := build(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func read(list string) (rows []row, err error) {
	text, err := os.ReadFile(list)
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	return rows, err
}
`

const GRYPE_WRITER = `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/afero"

	v6 "github.com/anchore/grype/grype/db/v6"
)

// By distribution: its name and id there, and the kind of its packages. AlmaLinux stands for Red Hat, whose records are asked for.
var systems = map[string][3]string{
	"Debian": {"debian", "debian", "deb"}, "Ubuntu": {"ubuntu", "ubuntu", "deb"}, "Alpine": {"alpine", "alpine", "apk"},
	"AlmaLinux": {"redhat", "rhel", "rpm"}, "Rocky Linux": {"rocky", "rocky", "rpm"},
}
${READ}
func build(list, dir string) error {
	rows, err := read(list)
	if err != nil {
		return err
	}
	db, err := v6.NewWriter(v6.Config{DBDirPath: dir})
	if err != nil {
		return err
	}
	if err := db.SetDBMetadata(); err != nil {
		return err
	}
	for _, one := range rows {
		if err := add(db, one); err != nil {
			return err
		}
	}
	if err := db.Close(); err != nil {
		return err
	}
	_, err = v6.WriteImportMetadata(afero.NewOsFs(), dir, "test")
	return err
}

// One time for all records: a provider with another one is another provider of the same id, which is refused.
var now = time.Now()

func add(db v6.ReadWriter, one row) error {
	parts := strings.Split(strings.NewReplacer(":LTS", "", ":Pro", "", ":v", ":").Replace(one.Ecosystem), ":")
	names := systems[parts[0]]
	system, id, kind := names[0], names[1], names[2]
	major, minor, _ := strings.Cut(parts[1], ".")
	provider := &v6.Provider{ID: system, Version: "1", Processor: "test", DateCaptured: &now, InputDigest: "sha256:0"}
	found := &v6.VulnerabilityHandle{
		Name: one.ID, Status: v6.VulnerabilityActive, PublishedDate: &now, ModifiedDate: &now,
		ProviderID: system, Provider: provider, BlobValue: &v6.VulnerabilityBlob{ID: one.ID},
	}
	if err := db.AddVulnerabilities(found); err != nil {
		return err
	}
	return db.AddAffectedPackages(&v6.AffectedPackageHandle{
		Vulnerability:   found,
		OperatingSystem: &v6.OperatingSystem{Name: system, ReleaseID: id, MajorVersion: major, MinorVersion: minor},
		Package:         &v6.Package{Ecosystem: kind, Name: one.Name},
		BlobValue: &v6.PackageBlob{
			CVEs:   []string{one.ID},
			Ranges: []v6.Range{{Version: v6.Version{Type: kind, Constraint: "< " + one.Fixed}}},
		},
	})
}
`

const TRIVY_WRITER = `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/aquasecurity/trivy-db/pkg/db"
	"github.com/aquasecurity/trivy-db/pkg/metadata"
	"github.com/aquasecurity/trivy-db/pkg/types"
)

// Its names of distributions, before their release.
var platform = strings.NewReplacer(
	"Debian:", "debian ", "Ubuntu:Pro:22.04:LTS", "ubuntu 22.04-ESM", "Ubuntu:", "ubuntu ", ":LTS", "",
	"Alpine:v", "alpine ", "AlmaLinux:", "alma ", "Rocky Linux:", "rocky ",
)
${READ}
func build(list, dir string) error {
	rows, err := read(list)
	if err != nil {
		return err
	}
	if err := db.Init(dir); err != nil {
		return err
	}
	defer db.Close()
	err = db.Config{}.BatchUpdate(func(tx *bolt.Tx) error {
		for _, one := range rows {
			if err := add(tx, one); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	made := metadata.Metadata{Version: db.SchemaVersion, NextUpdate: now.Add(24 * time.Hour), UpdatedAt: now}
	return metadata.NewClient(dir).Update(made)
}

func add(tx *bolt.Tx, one row) error {
	dbc := db.Config{}
	system := platform.Replace(one.Ecosystem)
	fixed := types.Advisory{FixedVersion: one.Fixed}
	if err := dbc.PutAdvisory(tx, []string{system, one.Name}, one.ID, fixed); err != nil {
		return err
	}
	if err := dbc.PutDataSource(tx, system, types.DataSource{ID: "test", Name: "test"}); err != nil {
		return err
	}
	return dbc.PutVulnerability(tx, one.ID, types.Vulnerability{Title: one.ID})
}
`
