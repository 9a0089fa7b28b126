module hagane.dev/hagane

go 1.19
